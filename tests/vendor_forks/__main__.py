"""`make vendor-forks`: a job on Sparks that lack, one by one, all that our jar refers to."""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyspark

from vendor_forks import outcome, running

FOUND = Path(__file__).parent / "found"


def main() -> int:
    """Writes what was found for the docs; returns 1 if a query failed or nobody was told."""
    words = argparse.ArgumentParser(prog="vendor_forks", description=__doc__)
    words.add_argument("--only", default="", help="those whose names this expression finds")
    words.add_argument("--every", type=int, default=1, help="one in so many of them")
    words.add_argument("--details", type=Path, help="a file for all that was said on each")
    words.add_argument("--jar", type=Path, help="another jar than the one for this Spark")
    given = words.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        runner = running.Runner(Path(folder, "forks"), given.jar)
        forks, found = runner.plan()
        for whole in found:
            _tell(whole)
        wanted = [f for f in forks if not f.is_idle and re.search(given.only, f.name)]
        wanted = wanted[:: given.every]
        print(f"{len(forks)} to imitate, {len(wanted)} to run", flush=True)
        found = []
        for one in runner.run(wanted):
            found.append(one)
            if given.details:
                with given.details.open("a", encoding="utf-8") as details:
                    print(json.dumps(one), file=details)
            if outcome.of(one) in outcome.BAD:
                _tell(one)
            if len(found) % 50 == 0:
                print(f"{len(found)} run, {time.monotonic() - began:.0f} s", flush=True)
    table = outcome.summary(forks, found)
    table |= {"spark": pyspark.__version__, "minutes": round((time.monotonic() - began) / 60)}
    text = json.dumps(table, indent=1) + "\n"
    print(text)
    if not given.only and given.every == 1:
        minor = ".".join(pyspark.__version__.split(".")[:2])
        (FOUND / f"{minor}.json").write_text(text, encoding="utf-8")
    return int(any(outcome.of(f) in outcome.BAD for f in found))


def _tell(found: dict[str, Any]) -> None:
    print(outcome.of(found), found["fork"], found["failed"], found["thrown"], flush=True)


if __name__ == "__main__":
    sys.exit(main())

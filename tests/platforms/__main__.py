"""``make platforms``: each runs Spark itself, with the settings of `aqepilot conf`.

Each is installed into an environment of its own, in target/platforms/.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

import click

from platforms.checks import CHECKS
from platforms.environments import OUT


@click.command(help=__doc__)
@click.option("--spark", required=True, type=Path, help="The environment of a Spark.")
@click.option("--only", multiple=True, type=click.Choice(list(CHECKS)), help="Only these.")
def main(spark: Path, only: tuple[str, ...]) -> None:
    failed = []
    for name in only or CHECKS:
        (OUT / name).mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        try:
            outcome = CHECKS[name](spark.absolute()) or "passed"
        except Exception:
            failed.append(name)
            traceback.print_exc()
            outcome = "FAILED"
        print(f"{name}: {outcome}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(only or CHECKS) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""`python -m bench`: measures, prints a markdown table and writes all figures as JSON.

Nothing here passes or fails: figures depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from bench import machine, options  # noqa: E402
from bench.figures import Table  # noqa: E402
from bench.parts import PARTS  # noqa: E402


def main() -> None:
    chosen = options.read(__doc__)
    where = machine.describe()
    figures: dict[str, Any] = {}
    for name in chosen.part:
        for measured in PARTS[name].measure(chosen):
            figures[name] = measured
            _write(chosen, where, figures)
    print(_report(chosen, where, figures))
    print(f"\nwritten: {chosen.out}/bench-spark-{where['spark']}.json, .md", file=sys.stderr)


def _write(chosen: argparse.Namespace, where: dict[str, Any], figures: dict[str, Any]) -> None:
    """Writes what is measured so far, so that a run that is ended early leaves it."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    name = f"bench-spark-{where['spark']}"
    measured = datetime.now(timezone.utc).isoformat(timespec="seconds")
    content = {"measured": measured, "machine": where, "figures": figures}
    (chosen.out / f"{name}.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    text = _report(chosen, where, figures)
    (chosen.out / f"{name}.md").write_text(text + "\n", encoding="utf-8")


def _report(chosen: argparse.Namespace, where: dict[str, Any], figures: dict[str, Any]) -> str:
    lines = [", ".join(f"{key} {value}" for key, value in where.items()), ""]
    for name, measured in figures.items():
        for table in PARTS[name].tables(measured, chosen):
            lines += _markdown(table)
    return "\n".join(lines)


def _markdown(table: Table) -> list[str]:
    title, head, rows = table
    rule = "|".join(["---", *["---:"] * (len(head) - 1)])
    body = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return [f"**{title}**", "", body[0], f"|{rule}|", *body[1:], ""]


if __name__ == "__main__":
    main()

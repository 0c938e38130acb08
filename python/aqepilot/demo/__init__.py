"""`aqepilot demo`: one job under spark-submit twice, plain and with a policy, side by side."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aqepilot import catalog, conf, jars
from aqepilot.demo import data, eventlog, screen, sparks
from aqepilot.policies import Policy

HERE = Path(__file__).parent
POLICY = HERE / "policy.toml"


def main(words: Sequence[str]) -> int:
    """Runs the demo.

    Args:
        words: The command line after ``aqepilot demo``.

    Returns:
        The exit code: 0 when every run gave the same rows with and without the policy.

    Raises:
        AqePilotError: A Spark, the data or a run failed; says what to do.
    """
    options = _parser().parse_args(words)
    minors = [row.minor for row in catalog.spark_minors()] if options.all else [options.spark]
    console = screen.console(options.svg is not None)
    all_same = True
    for minor in dict.fromkeys(minors):
        spark = sparks.find(minor, options.data)
        tables = data.skewed(options.data, options.scale, spark)
        args = _policy_words(spark)
        both = [f"--conf={setting}" for setting in options.conf]
        with console.status(f"Spark {spark.version}: plain"):
            data.warm(tables)
            plain = _run(spark, both, tables)
        with console.status(f"Spark {spark.version}: with the policy"):
            decided = _run(spark, [*both, *shlex.split(args)], tables)
        console.print(screen.comparison(spark.version, options.scale, plain, decided))
        all_same &= plain.output == decided.output
    console.print(screen.how_to(_from_here(POLICY), args))
    if options.svg:
        options.svg.write_text(screen.picture(console), "utf-8")
    return 0 if all_same else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aqepilot demo",
        description="Run one job under spark-submit twice, plain and with a policy, and show the "
        "two executed joins, times and decisions. Data: TPC-H with a skewed key, made once.",
        epilog="Examples: aqepilot demo; aqepilot demo --spark 3.5; aqepilot demo --all",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--spark", metavar="MINOR", help="e.g. 4.3; default: the installed one")
    which.add_argument("--all", action="store_true", help="every supported minor in turn")
    parser.add_argument(
        "--scale",
        type=float,
        default=1.0,
        help="TPC-H scale factor, default 1; below 0.5 Spark broadcasts the join anyway",
    )
    parser.add_argument(
        "--data", type=Path, default=Path(".data"), help="where data is kept (default .data)"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting for both runs"
    )
    parser.add_argument("--svg", type=Path, help="also save what is shown as a picture")
    return parser


def _policy_words(spark: sparks.Spark) -> str:
    """What `aqepilot conf policy.toml --format args` prints for that Spark."""
    jar = _from_here(jars.find(spark.version))
    return conf.to_args(conf.settings([Policy.from_file(POLICY)], str(jar)))


def _from_here(path: Path) -> Path:
    """Relative to the current folder if below it: shorter to read and to copy."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _run(spark: sparks.Spark, words: Sequence[str], tables: Path) -> screen.Side:
    with tempfile.TemporaryDirectory(prefix="aqepilot-demo-") as log:
        logged = (
            "--conf=spark.eventLog.enabled=true",
            f"--conf=spark.eventLog.dir={log}",
            "--conf=spark.eventLog.compress=false",
            "--conf=spark.eventLog.rolling.enabled=false",
        )
        run = sparks.submit(spark, (*logged, *words), HERE / "job.py", (str(tables),))
        return screen.Side(eventlog.read(Path(log)), run.wall_s, run.output)

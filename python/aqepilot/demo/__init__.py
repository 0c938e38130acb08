"""`aqepilot demo`: one job under spark-submit twice, plain and with a policy, side by side."""

from __future__ import annotations

import argparse
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aqepilot import catalog
from aqepilot.demo import data, query, screen, sparks
from aqepilot.policies import Policy
from aqepilot.submit import conf, jars

HERE = Path(__file__).parent
POLICY = HERE / "policy.toml"
# A look-up waits and needs no core: sixteen slots gain on any machine what they gain on a cluster.
MASTER = "local[16]"
# As if the customers were too many to broadcast.
SHUFFLED = (
    "--conf=spark.sql.autoBroadcastJoinThreshold=-1",
    "--conf=spark.sql.adaptive.autoBroadcastJoinThreshold=-1",
)


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
        tables = data.events(options.data, spark)
        args = _policy_words(spark)
        both = [*SHUFFLED, *(f"--conf={setting}" for setting in options.conf)]
        wait = f"{options.wait_ms:g}"
        with console.status(f"Spark {spark.version}: plain"):
            plain = _run(spark, both, tables, wait)
        with console.status(f"Spark {spark.version}: with the policy"):
            decided = _run(spark, [*both, *shlex.split(args)], tables, wait)
        console.print(screen.comparison(spark.version, MASTER, wait, plain, decided))
        all_same &= plain.output == decided.output
    console.print(screen.how_to(_from_here(POLICY), args))
    if options.svg:
        options.svg.write_text(screen.picture(console), "utf-8")
    return 0 if all_same else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="aqepilot demo",
        description="Run one job under spark-submit twice, plain and with a policy, and show the "
        "times of its tasks and the decisions. Data: a join with a hot key, made once.",
        epilog="Examples: aqepilot demo; aqepilot demo --spark 3.5; aqepilot demo --all",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--spark", metavar="MINOR", help="e.g. 4.3; default: the installed one")
    which.add_argument("--all", action="store_true", help="every supported minor in turn")
    parser.add_argument(
        "--wait-ms",
        type=float,
        default=6,
        help="milliseconds that the look-up of a row waits, default 6",
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


def _run(spark: sparks.Spark, words: Sequence[str], tables: Path, wait: str) -> screen.Side:
    with tempfile.TemporaryDirectory(prefix="aqepilot-demo-") as log:
        logged = (
            "--conf=spark.eventLog.enabled=true",
            f"--conf=spark.eventLog.dir={log}",
            "--conf=spark.eventLog.compress=false",
            "--conf=spark.eventLog.rolling.enabled=false",
        )
        args = (str(tables), wait)
        run = sparks.submit(spark, (*logged, *words), HERE / "job.py", args, MASTER)
        return screen.Side(query.read(Path(log)), run.wall_s, run.output)

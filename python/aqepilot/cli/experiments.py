"""Commands about experiments in production."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aqepilot.cli.options import (
    EXIT_CODES,
    as_json,
    console,
    log_session,
    logs,
    master,
    prices,
    reports_errors,
    setting,
    table,
    top,
)
from aqepilot.errors import AqePilotError

if TYPE_CHECKING:
    from aqepilot.analysis.intervals import Interval

_METRICS = ["task_ms", "wall_ms", "cpu_ms", "core_ms", "shuffle_bytes", "spill_bytes"]


@click.group(
    short_help="Compare policies in production.",
    epilog="\b\nExamples:\n  aqepilot experiment plan --log s3a://logs/spark-events\n"
    "  aqepilot experiment analyse --log s3a://logs/spark-events\n\n" + EXIT_CODES,
)
def experiment() -> None:
    """Compare policies in production: what to expect of it, and what it says."""


@experiment.command(
    "plan",
    short_help="Say how many days it takes.",
    epilog="\b\nExamples:\n  aqepilot experiment plan --log s3a://logs/spark-events\n"
    "  aqepilot experiment plan --log s3a://lake/aqepilot --effect 10 --treatment 20 --top 50\n\n"
    + EXIT_CODES,
)
@logs
@click.option(
    "--metric",
    type=click.Choice(_METRICS),
    default="task_ms",
    show_default=True,
    help="What is compared, summed over the queries of a run.",
)
@click.option(
    "--effect",
    type=click.FloatRange(0, 90, min_open=True),
    default=5.0,
    show_default=True,
    metavar="PERCENT",
    help="How much less of it is to be found.",
)
@click.option(
    "--treatment",
    type=click.FloatRange(1, 99),
    default=50.0,
    show_default=True,
    metavar="PERCENT",
    help="Of the runs, how many get the treatment.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 1000),
    default=90,
    show_default=True,
    metavar="N",
    help="Where to give up.",
)
@top(20, 10_000, "How many jobs to look at by themselves, those with most of the metric.", least=0)
@master
@as_json
@reports_errors
def plan_experiment(
    logs: Sequence[str],
    metric: str,
    effect: float,
    treatment: float,
    days: int,
    top: int,
    master: str | None,
    as_json: bool,
) -> None:
    """Say from your own logs how many days it takes until an effect is found.

    The figures hold for four of five experiments that are looked at after every run.
    """
    from aqepilot import read_log
    from aqepilot.analysis.experiment import needs_numpy

    needs_numpy()
    from aqepilot.analysis.experiment.metrics import METRICS

    with (
        log_session(logs, master, "aqepilot experiment plan") as spark,
        console().status("Simulating experiments ..."),
    ):
        plan = (
            read_log(spark, logs)
            .runs()
            .plan(metric, effect=effect / 100, share=treatment / 100, most_days=days, top=top)
        )
    if as_json:
        click.echo(json.dumps(plan._asdict(), indent=2))
        return
    what, _, _ = METRICS[metric]
    jobs = "1 job" if plan.jobs == 1 else f"{plan.jobs} jobs"
    click.echo(
        f"{jobs}, {plan.runs_per_day:.1f} runs a day. Their {what} varies by "
        f"{100 * plan.sd:.0f} % beside what is known before a run, and by "
        f"{100 * plan.raw_sd:.0f} % around each job's mean."
    )

    def phrase(days_taken: int | None) -> str:
        return f"found within {days_taken} days" if days_taken else f"not found within {days} days"

    click.echo(f"{effect:g} % less is {phrase(plan.days)}, for all jobs together.")
    if plan.by_job:
        rows = [(job, phrase(days_taken)) for job, days_taken in plan.by_job.items()]
        console().print(table(("job by itself", f"{effect:g} % less is"), rows))


@experiment.command(
    "analyse",
    short_help="Say what an experiment found so far.",
    epilog="\b\nExamples:\n  aqepilot experiment analyse --log s3a://logs/spark-events\n"
    "  aqepilot experiment analyse --log s3a://lake/aqepilot --name skew_v2 "
    "--roll-back s3a://etc/aqepilot.json\n\n" + EXIT_CODES,
)
@logs
@click.option("--name", metavar="NAME", help="The experiment; needed where the logs have several.")
@click.option("--arm", metavar="ARM", help="The arm to compare with the control; else the second.")
@click.option(
    "--metric",
    type=click.Choice(_METRICS),
    help="What decides; else what was submitted as spark.aqepilot.experiment.metric.",
)
@click.option(
    "--abandoned-after",
    "hours",
    type=click.FloatRange(0),
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="An application without an end that began less than so long ago may still run: it is "
    "left out. After that it counts as failed.",
)
@click.option(
    "--harm",
    type=click.FloatRange(1, min_open=True),
    default=1.5,
    show_default=True,
    metavar="FACTOR",
    help="A job, or a query, is harmed where it takes so many times as long.",
)
@prices
@click.option(
    "--roll-back",
    "file",
    metavar="PATH",
    help="A control file, in which the treatment's policies are switched off for the jobs that it "
    "harms, or altogether where it makes runs longer or fail.",
)
@click.option(
    "--conf",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A Spark setting, such as spark.hadoop.*; may be given several times.",
)
@master
@as_json
@reports_errors
def analyse_experiment(
    logs: Sequence[str],
    name: str | None,
    arm: str | None,
    metric: str | None,
    hours: float,
    harm: float,
    prices_file: Path | None,
    file: str | None,
    settings: Sequence[str],
    master: str | None,
    as_json: bool,
) -> None:
    """Say what an experiment found so far: the effect, whom it harms, and what to do.

    To look after every run is allowed: intervals hold at all times at once. Ends with 1 where the
    verdict is stop or broken, or a job is harmed.
    """
    from aqepilot import Prices, read_log
    from aqepilot.analysis.experiment import needs_numpy

    needs_numpy()
    from aqepilot.analysis.experiment import verdicts
    from aqepilot.analysis.experiment.history import cached
    from aqepilot.analysis.experiment.money import money
    from aqepilot.control.rules import shown

    prices = Prices.from_file(prices_file) if prices_file else None
    conf = dict(setting(text) for text in settings)
    with log_session(logs, master, "aqepilot experiment analyse", conf) as spark:
        log = read_log(spark, logs)
        with console().status("Reading event logs ..."), cached(log) as once:
            runs = once.runs(name, arm=arm, abandoned_after_hours=hours)
            experiment = runs.experiment
            harmed: dict[str, Interval] = {}
            try:
                harmed = runs.harmed_queries(metric, harmful=harm)
            except AqePilotError as error:
                click.echo(f"Single queries are not looked at: {error}", err=True)
    experiment = experiment._replace(metric=metric or experiment.metric)
    analysis = runs.analyse(metric, harmful=harm)
    cost = money(runs.units, analysis, prices) if prices else None
    rules = verdicts.roll_back(experiment, analysis, file, conf) if file else []
    if as_json:
        result = verdicts.data(experiment, analysis, queries=harmed, money=cost) | {
            "rolled_back": [rule.selectors for rule in rules]
        }
        click.echo(json.dumps(result, indent=2))
    else:
        console().print(verdicts.table(experiment, analysis))
        lines = verdicts.sentences(experiment, analysis, harmful=harm, queries=harmed, money=cost)
        for line in lines:
            click.echo(line)
        for rule in rules:
            click.echo(f"Switched off in {file}: {shown(rule.selectors)}.")
    sys.exit(1 if analysis.verdict in ("stop", "broken") or analysis.harmed or harmed else 0)


COMMANDS = (experiment,)

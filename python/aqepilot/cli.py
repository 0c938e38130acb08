"""The command line: what a platform team does without writing Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click
from rich.markup import escape
from rich.table import Table

from aqepilot import catalog, cli_log
from aqepilot.__about__ import __version__
from aqepilot.cli_options import EXIT_CODES as _EXIT_CODES
from aqepilot.cli_options import LOG_HELP as _LOG_HELP
from aqepilot.cli_options import P
from aqepilot.cli_options import as_json as _as_json
from aqepilot.cli_options import console as _console
from aqepilot.cli_options import master as _master
from aqepilot.cli_options import prices as _prices
from aqepilot.cli_options import reports_errors as _reports_errors
from aqepilot.cli_options import scala as _scala
from aqepilot.cli_options import spark as _spark
from aqepilot.cli_options import table as _table
from aqepilot.errors import AqePilotError, Problem


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  aqepilot recipes dynamic_join_selection > sales.toml\n"
    "  aqepilot check sales.toml\n"
    '  eval "spark-submit $(aqepilot conf sales.toml) job.py"\n\n' + _EXIT_CODES,
)
@click.version_option(__version__, prog_name="aqepilot")
def main() -> None:
    """Replace decisions of Spark's adaptive query execution by policies in SQL or Python."""


@main.command(
    short_help="Print the settings for policies.",
    epilog="\b\nExamples:\n"
    '  eval "spark-submit $(aqepilot conf sales.toml) job.py"\n'
    "  aqepilot conf sales.toml --format defaults >> spark-defaults.conf\n"
    "  aqepilot conf sales.toml --format json --spark 3.5 --jar-uri s3://jars/aqepilot.jar\n"
    "  aqepilot conf sales.toml --merge $SPARK_HOME/conf/spark-defaults.conf\n\n" + _EXIT_CODES,
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["args", "defaults", "json"]),
    default="args",
    show_default=True,
    help="Shell words for spark-submit, lines for spark-defaults.conf, or a JSON object.",
)
@click.option(
    "--merge",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A spark-defaults.conf: its extensions, jars and policies are kept in what is printed.",
)
@click.option(
    "--jar-uri", metavar="URI", help="Where the jar is for the jobs; else this package's."
)
@_spark
@_scala
@_reports_errors
def conf(
    files: Sequence[Path],
    form: str,
    merge: Path | None,
    jar_uri: str | None,
    spark: str | None,
    scala: str | None,
) -> None:
    """Print the settings that switch aqepilot on with the policies in FILEs.

    A FILE with a table [experiment] defines one; then give the files of all its arms' policies.
    Settings go to the standard output, advice to the standard error. Without a FILE: the extension
    and its jar only.
    """
    from aqepilot import conf as settings
    from aqepilot import jars
    from aqepilot.experiment import definition
    from aqepilot.policies import as_policies

    policies = as_policies(path for path in files if not definition.is_one(path))
    experiments = [path for path in files if definition.is_one(path)]
    experiment = definition.of_files(experiments, policies)
    jar = jar_uri or str(jars.find(spark, scala))
    there = settings.parse_defaults(merge.read_text("utf-8")) if merge else {}
    values = settings.settings(policies, jar, there)
    if experiment:
        # The arms take the place of the list.
        if settings.POLICIES_KEY not in there:
            values.pop(settings.POLICIES_KEY, None)
        values |= experiment.to_conf()
    write = {
        "args": settings.to_args,
        "defaults": settings.to_defaults,
        "json": settings.to_json,
    }[form]
    click.echo(write(values))
    for line in settings.advice(form, values, merge is not None):
        click.echo(f"# {line}", err=True)
    for key in settings.stale_keys(policies, there):
        click.echo(f"# Delete {key} from {merge}: the new policy does not have it.", err=True)


@main.command(
    short_help="Check policy files, SQL included.",
    epilog="\b\nExample:\n  aqepilot check policies/*.toml\n\n" + _EXIT_CODES,
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@_as_json
@_reports_errors
def check(files: Sequence[Path], as_json: bool) -> None:
    """Check policy FILEs: their keys, and their SQL against the facts, in a local Spark.

    A FILE with a table [experiment] is checked together with the policies of its arms.

    Python functions are imported, also from the working directory, and asked on made facts.
    """
    from aqepilot.check import check_files

    sys.path.append(str(Path.cwd()))
    problems = check_files(files)
    if as_json:
        click.echo(json.dumps({"problems": [p._asdict() for p in problems]}, indent=2))
    else:
        _print_problems(problems)
        if not problems:
            click.echo(f"{len(files)} polic{'y' if len(files) == 1 else 'ies'}: good.")
    sys.exit(1 if problems else 0)


@main.command(
    short_help="Show what a policy can read and answer.",
    epilog="\b\nExample:\n  aqepilot facts dynamic_join_selection\n\n" + _EXIT_CODES,
)
@click.argument("point")
@_as_json
@_reports_errors
def facts(point: str, as_json: bool) -> None:
    """Show what a policy can read at a decision POINT, and what it may answer."""
    found = catalog.point(point)
    if as_json:
        parts = ("words", "fields", "facts")
        rows = {part: [row._asdict() for row in getattr(found, part)] for part in parts}
        click.echo(json.dumps(found._asdict() | rows, indent=2))
        return
    console = _console()
    console.print(f"[bold]{found.name}[/bold]: {escape(found.summary)}")
    console.print(f"Asked {escape(found.asked)}. Spark's own rule: {escape(found.built_in)}.")
    if found.fields:
        console.print(_table(("Field of the answer", "Type", "Meaning"), found.fields))
        console.print(
            "An answer is named_struct('<field>', value, ...): fields that are not named, or are "
            "null, keep Spark's value. A null answer leaves all to Spark."
        )
    if found.words or not found.fields:
        words = found.words or [(found.answer_type, found.answer_meaning)]
        console.print(_table(("Answer", "Meaning"), [*words, ("null", "leave it to Spark")]))
    console.print(_table(("Fact", "Type", "Meaning"), found.facts))


@main.command(
    short_help="List or print Spark's own rules as policies.",
    epilog="\b\nExamples:\n  aqepilot recipes\n"
    "  aqepilot recipes dynamic_join_selection --spark 4.3 > sales.toml\n\n" + _EXIT_CODES,
)
@click.argument("name", required=False)
@_spark
@_as_json
@_reports_errors
def recipes(name: str | None, spark: str | None, as_json: bool) -> None:
    """List Spark's own rules as policies, or print the policy file NAME to begin with."""
    from aqepilot import recipes as book

    if name is not None:
        text = book.text(name, spark)
        click.echo(json.dumps({"name": name, "text": text}) if as_json else text, nl=as_json)
    elif as_json:
        click.echo(
            json.dumps([{"name": n, "summary": book.summary(n, spark)} for n in book.names()])
        )
    else:
        rows = [(n, book.summary(n, spark)) for n in book.names()]
        _console().print(_table(("Recipe", "What it is"), rows))


def _selectors(command: Callable[P, None]) -> Callable[P, None]:
    """An option for each selector of the control file, so that there is none too few."""
    for name, meaning in reversed(catalog.control_selectors().items()):
        command = click.option(f"--{name}", metavar="TEXT", help=f"Only: {meaning}.")(command)
    return command


@main.command(
    short_help="Switch policies off, or to shadow mode, in all applications at once.",
    epilog="\b\nExamples:\n"
    "  aqepilot control off --file s3a://etc/aqepilot.json --policy sales --reason 'slow joins'\n"
    "  aqepilot control shadow --file control.json --point skew_join --for 2h --reason 'a trial'\n"
    "  aqepilot control on --file control.json --policy sales --reason mended\n"
    "  aqepilot control status --file control.json\n\n" + _EXIT_CODES,
)
@click.argument("action", type=click.Choice(["off", "shadow", "on", "status", "log"]))
@click.option(
    "--file",
    "path",
    required=True,
    envvar="AQEPILOT_CONTROL",
    show_envvar=True,
    metavar="PATH",
    help="The control file: a path of this machine or a URI of a Hadoop file system.",
)
@_selectors
@click.option("--rule", metavar="ID", help="With on: the rule with this id.")
@click.option("--all", "everything", is_flag=True, help="With on: all rules.")
@click.option("--reason", default="", help="Why; off and shadow need one.")
@click.option("--for", "lasts", metavar="TIME", help="End it after so long: 90m, 2h or 7d.")
@click.option("--until", metavar="TIME", help="End it then, e.g. 2026-12-24T18:00:00+01:00.")
@click.option("--by", metavar="NAME", help="Who says so.  [default: this user at this machine]")
@click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting, for the file system."
)
@_as_json
@_reports_errors
def control(
    action: str,
    path: str,
    rule: str | None,
    everything: bool,
    reason: str,
    lasts: str | None,
    until: str | None,
    by: str | None,
    conf: Sequence[str],
    as_json: bool,
    **selectors: str | None,
) -> None:
    """Lower the modes of policies in all applications that read the same control file.

    off and shadow add a rule for what all the selectors fit, or for everything; on takes the rule
    with the same selectors back. status tells the rules, log who wrote what, when and why.
    """
    from aqepilot import control as files
    from aqepilot.control import telling

    own = {name: value for name, value in selectors.items() if value is not None}
    shown: Sequence[files.Rule] | Sequence[files.Write]
    telling.check_options(action, own, rule, everything, reason, lasts, until)
    settings = telling.settings(conf)
    if action in ("off", "shadow"):
        end = telling.end(lasts, until)
        mode: Literal["off", "shadow"] = "off" if action == "off" else "shadow"
        made = files.lower(path, mode, own, reason=reason, until=end, by=by, conf=settings)
        shown = [made]
        told: str | Table = telling.done(action, [made], path)
    elif action == "on":
        shown = lifted = files.lift(
            path, own, rule=rule, everything=everything, reason=reason, by=by, conf=settings
        )
        told = telling.done(action, lifted, path)
    else:
        found = files.read(path, settings)
        shown = found.rules if action == "status" else found.history
        told = telling.table(found, action)
    if as_json:
        click.echo(json.dumps([one.model_dump(mode="json") for one in shown], indent=2))
    elif isinstance(told, str):
        click.echo(told)
    else:
        _console().print(told)


@main.command(
    short_help="Add event logs to tables, each application once.",
    epilog="\b\nExample:\n"
    "  aqepilot collect --log s3a://logs/spark-events --to s3a://lake/aqepilot\n\n" + _EXIT_CODES,
)
@click.option("--log", "logs", multiple=True, required=True, metavar="PATH", help=_LOG_HELP)
@click.option("--to", required=True, metavar="FOLDER", help="The tables' folder.")
@click.option(
    "--abandoned-after",
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="Read a log in progress that has not changed for so long.",
)
@click.option("--again", is_flag=True, help="Also logs that could not be read to their end before.")
@_master
@_as_json
@_reports_errors
def collect(
    logs: Sequence[str],
    to: str,
    abandoned_after: float,
    again: bool,
    master: str | None,
    as_json: bool,
) -> None:
    """Add event logs that are not there yet to Parquet tables, which --log takes as it takes logs.

    Run it as often as you like: it can be killed at any point.
    """
    from aqepilot.check import local_session
    from aqepilot.log import tables

    with local_session(master, "aqepilot collect") as spark:
        found = tables.collect(spark, logs, to, abandoned_after_hours=abandoned_after, again=again)
    if as_json:
        click.echo(json.dumps(found._asdict(), indent=2))
        return
    click.echo(
        f"{found.logs} logs added, {found.known} known already, {found.running} still written."
    )
    if found.unreadable_lines:
        message = f"{found.unreadable_lines} lines of these are no whole events: left out."
        click.echo(message, err=True)
    if found.unreadable_logs:
        message = (
            f"{found.unreadable_logs} logs could not be read to their end: `problem` in the table "
            "applications says why. They are not read again until they change; --again does."
        )
        click.echo(message, err=True)


@main.command(
    short_help="Ask policies again with the facts of event logs.",
    epilog="\b\nExamples:\n"
    "  aqepilot replay --log s3a://logs/spark-events --policy new.toml\n"
    "  aqepilot replay --log logs --policy new.toml --against old.toml\n"
    "  aqepilot replay --log logs --policy new.toml --fail-if \"after = 'BROADCAST'\"\n\n"
    + _EXIT_CODES,
)
@click.option("--log", "logs", multiple=True, required=True, metavar="PATH", help=_LOG_HELP)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A policy file; several are asked in this order.",
)
@click.option(
    "--against",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A policy file to compare with; else what the logs have.",
)
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="SQL",
    help="End with 1 where this is true of an answer, or could be checked on none; it may read the "
    "facts, too.",
)
@_master
@_as_json
@_reports_errors
def replay(
    logs: Sequence[str],
    policies: Sequence[Path],
    against: Sequence[Path],
    conditions: Sequence[str],
    master: str | None,
    as_json: bool,
) -> None:
    """Ask policies again with the facts of event logs, and show what would change.

    Python functions are imported, also from the working directory, and called by Spark's tasks.
    """
    from aqepilot.check import local_session
    from aqepilot.log import read_log, replay_result

    sys.path.append(str(Path.cwd()))
    with local_session(master, "aqepilot replay") as spark:
        found = replay_result.replayed(read_log(spark, logs), policies, against, conditions)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        console = _console()
        console.print(escape(found["summary"]))
        if found["changes"]:
            console.print(_table(replay_result.HEAD, replay_result.rows(found["changes"])))
        for line in replay_result.lines(found):
            click.echo(line, err=True)
    sys.exit(1 if replay_result.fails(found) else 0)


@main.command(
    short_help="Time queries with and without policies, in pairs.",
    epilog="\b\nExamples:\n"
    "  aqepilot bench queries/ --tables data/ --policy new.toml\n"
    "  aqepilot bench q5.sql --setup views.sql --policy new.toml --against old.toml\n\n"
    + _EXIT_CODES,
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="A policy file, the treatment; several are asked in this order.",
)
@click.option(
    "--against",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A policy file to compare with.  [default: plain Spark]",
)
@click.option(
    "--tables",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder whose Parquet files and folders become views.",
)
@click.option(
    "--setup",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="SQL statements that are run first; each ends with a semicolon at a line's end.",
)
@click.option(
    "--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A Spark setting; repeatable."
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    metavar="N",
    help="How many at most; it ends when the verdict is clear.",
)
@click.option(
    "--all-rounds", is_flag=True, help="Go on to the last round, for the verdict on each query."
)
@click.option(
    "--warm-up",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    metavar="N",
    help="Rounds before that do not count.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True),
    default=3.0,
    show_default=True,
    metavar="PERCENT",
    help="How little counts as no difference.",
)
@click.option("--seed", type=int, metavar="N", help="Of the order of runs.  [default: drawn]")
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Gets a line of JSON for each run.",
)
@_master
@_as_json
@_reports_errors
def bench(
    files: Sequence[Path],
    policies: Sequence[Path],
    against: Sequence[Path],
    tables: Path | None,
    setup: Path | None,
    settings: Sequence[str],
    rounds: int,
    all_rounds: bool,
    warm_up: int,
    margin: float,
    seed: int | None,
    runs: Path | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Time queries with and without policies, in pairs, until it is clear which is faster.

    FILES hold one SQL statement each; of a folder, all *.sql are run. Intervals hold at all times
    at once, so that one may stop when one likes. Ends with 1 where the treatment is slower, where
    a query is, or where one fails with the policies only.
    """
    from aqepilot.check import local_session
    from aqepilot.experiment import paired, queries, telling

    wanted = queries.read(files)
    conf = dict(_setting(text) for text in settings)
    sys.path.append(str(Path.cwd()))
    with local_session(master, "aqepilot bench", conf) as spark:
        if tables:
            queries.register(spark, tables)
        if setup:
            queries.set_up(spark, setup)
        each = paired.bench(
            spark,
            wanted,
            policies,
            against,
            rounds=rounds,
            all_rounds=all_rounds,
            warm_up=warm_up,
            margin=margin / 100,
            seed=seed,
            runs=runs,
        )
        found = telling.streamed(each, _console(), quiet=as_json)
    if as_json:
        click.echo(json.dumps(telling.data(found), indent=2))
    else:
        for line in telling.sentences(found):
            click.echo(line)
    sys.exit(1 if found.verdict in ("slower", "broken") or found.harmed else 0)


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise click.BadParameter(f"{text!r} is not spark.<key>=<value>.", param_hint="--conf")
    return key, value


@main.group(
    short_help="Compare policies in production.",
    epilog="\b\nExamples:\n  aqepilot experiment plan --log s3a://logs/spark-events\n"
    "  aqepilot experiment analyse --log s3a://logs/spark-events\n\n" + _EXIT_CODES,
)
def experiment() -> None:
    """Compare policies in production: what to expect of it, and what it says."""


_METRICS = ["task_ms", "wall_ms", "cpu_ms", "core_ms", "shuffle_bytes", "spill_bytes"]


@experiment.command(
    "plan",
    short_help="Say how many days it takes.",
    epilog="\b\nExamples:\n  aqepilot experiment plan --log s3a://logs/spark-events\n"
    "  aqepilot experiment plan --log s3a://lake/aqepilot --effect 10 --treatment 20 --top 50\n\n"
    + _EXIT_CODES,
)
@click.option("--log", "logs", multiple=True, required=True, metavar="PATH", help=_LOG_HELP)
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
@click.option(
    "--top",
    type=click.IntRange(0, 10_000),
    default=20,
    show_default=True,
    metavar="N",
    help="How many jobs to look at by themselves, those with most of the metric.",
)
@_master
@_as_json
@_reports_errors
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

    What is told holds for four of five experiments that are looked at after every run.
    """
    from aqepilot.check import local_session
    from aqepilot.experiment import needs_numpy
    from aqepilot.log import read_log

    needs_numpy()
    from aqepilot.experiment import history, metrics, planning

    with local_session(master, "aqepilot experiment plan") as spark:
        runs = history.runs_of(read_log(spark, logs))
    with _console().status("Simulating experiments ..."):
        found = planning.plan(
            runs, metric, effect=effect / 100, share=treatment / 100, most_days=days, top=top
        )
    if as_json:
        click.echo(json.dumps(found._asdict(), indent=2))
        return
    what, _, _ = metrics.METRICS[metric]
    jobs = "1 job" if found.jobs == 1 else f"{found.jobs} jobs"
    click.echo(
        f"{jobs}, {found.runs_per_day:.1f} runs a day. Their {what} varies by "
        f"{100 * found.sd:.0f} % beside what is known before a run, and by "
        f"{100 * found.raw_sd:.0f} % around each job's mean."
    )

    def told(of: int | None) -> str:
        return f"found within {of} days" if of else f"not found within {days} days"

    click.echo(f"{effect:g} % less is {told(found.days)}, for all jobs together.")
    if found.by_job:
        rows = [(job, told(of)) for job, of in found.by_job.items()]
        _console().print(_table(("job by itself", f"{effect:g} % less is"), rows))


@experiment.command(
    "analyse",
    short_help="Say what an experiment found so far.",
    epilog="\b\nExamples:\n  aqepilot experiment analyse --log s3a://logs/spark-events\n"
    "  aqepilot experiment analyse --log s3a://lake/aqepilot --name skew_v2 "
    "--roll-back s3a://etc/aqepilot.json\n\n" + _EXIT_CODES,
)
@click.option("--log", "logs", multiple=True, required=True, metavar="PATH", help=_LOG_HELP)
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
@_prices
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
@_master
@_as_json
@_reports_errors
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
    from aqepilot.check import local_session
    from aqepilot.experiment import needs_numpy
    from aqepilot.log import read_log

    needs_numpy()
    from aqepilot.control.rules import shown
    from aqepilot.experiment import analysis, history, verdicts
    from aqepilot.experiment.money import money
    from aqepilot.report.prices import Prices

    prices = Prices.from_file(prices_file) if prices_file else None
    conf = dict(_setting(text) for text in settings)
    # On one machine most of Spark's 200 tasks a shuffle would have nothing to do.
    few = {"spark.sql.shuffle.partitions": "16"} if (master or "").startswith("local") else {}
    with local_session(master, "aqepilot experiment analyse", few | conf) as spark:
        log = read_log(spark, logs)
        with _console().status("Reading event logs ..."), history.kept(log) as once:
            of, runs = history.runs_in(once, name, arm=arm, abandoned_after_hours=hours)
            queries = None
            if of.unit_kind == "job_run":
                try:
                    queries = history.queries_in(once, of)
                except AqePilotError as error:
                    click.echo(f"Single queries are not looked at: {error}", err=True)
    of = of._replace(metric=metric or of.metric)
    found = analysis.analyse(runs, of.metric, harmful=harm)
    harmed = analysis.harmed_queries(queries, of.metric, harmful=harm) if queries else {}
    cost = money(runs, found, prices) if prices else None
    rules = verdicts.roll_back(of, found, file, conf) if file else []
    if as_json:
        told = verdicts.data(of, found, queries=harmed, money=cost) | {
            "rolled_back": [rule.selectors for rule in rules]
        }
        click.echo(json.dumps(told, indent=2))
    else:
        _console().print(verdicts.table(of, found))
        for line in verdicts.sentences(of, found, harmful=harm, queries=harmed, money=cost):
            click.echo(line)
        for rule in rules:
            click.echo(f"Switched off in {file}: {shown(rule.selectors)}.")
    sys.exit(1 if found.verdict in ("stop", "broken") or found.harmed or harmed else 0)


@main.command(
    short_help="Make one HTML page of event logs.",
    epilog="\b\nExamples:\n"
    "  aqepilot report --log s3a://logs/spark-events -o report.html\n"
    "  aqepilot report --log s3a://lake/aqepilot -o report.html --prices prices.toml --top 50\n\n"
    + _EXIT_CODES,
)
@click.option("--log", "logs", multiple=True, required=True, metavar="PATH", help=_LOG_HELP)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The page; one that is there is replaced.",
)
@_prices
@click.option(
    "--top",
    type=click.IntRange(1, 10_000),
    default=200,
    show_default=True,
    metavar="N",
    help="How many queries to show, those with most task time.",
)
@_master
@_reports_errors
def report(
    logs: Sequence[str], output: Path, prices_file: Path | None, top: int, master: str | None
) -> None:
    """Make one HTML page of event logs: where time goes, and what was decided.

    It needs no network and no script. What comes to this machine is bounded, whatever the logs.
    """
    from aqepilot import report as page
    from aqepilot.check import local_session

    page.check(output)
    prices = page.Prices.from_file(prices_file) if prices_file else None
    with local_session(master, "aqepilot report") as spark:
        made = page.report(spark, logs, output, prices=prices, top=top)
    click.echo(
        f"{output}: {made.queries} queries of {made.applications} applications, "
        f"{made.page_bytes / 1024:,.0f} KiB."
    )
    if made.unreadable_lines:
        message = f"{made.unreadable_lines} lines of the logs are no whole events: left out."
        click.echo(message, err=True)
    if made.unreadable_logs:
        click.echo(f"{made.unreadable_logs} logs could not be read to their end.", err=True)


for _command in cli_log.COMMANDS:
    main.add_command(_command)


@main.command(
    short_help="Print the path of the jar for a Spark.",
    epilog="\b\nExample:\n  aqepilot jar --spark 3.5.6-amzn-1\n\n" + _EXIT_CODES,
)
@_spark
@_scala
@_reports_errors
def jar(spark: str | None, scala: str | None) -> None:
    """Print the path of the jar for a Spark; without --spark, for the one installed here."""
    from aqepilot import jars

    click.echo(jars.find(spark, scala))


@main.command(
    short_help="Say whether aqepilot is live, and why not.",
    context_settings={"ignore_unknown_options": True},
    epilog="\b\nExamples:\n  aqepilot doctor\n"
    "  aqepilot doctor --json -- --master yarn --properties-file job.conf\n"
    "  aqepilot doctor --answer-in hdfs:///tmp -- --master yarn --deploy-mode cluster\n"
    "  aqepilot doctor --script doctor_job.py\n\n" + _EXIT_CODES,
)
@_as_json
@click.option(
    "--answer-in",
    metavar="FOLDER",
    help="Where the driver writes its answer, for --deploy-mode cluster: both reach it.",
)
@click.option(
    "--script",
    "script_file",
    metavar="FILE",
    help="Start nothing, and write the job that does this to FILE: spark-submit FILE PATH has the "
    "driver write one JSON of findings to PATH.",
)
@click.argument("submit_words", nargs=-1, type=click.UNPROCESSED, metavar="[-- SPARK-SUBMIT-WORDS]")
@_reports_errors
def doctor(
    as_json: bool, answer_in: str | None, script_file: str | None, submit_words: Sequence[str]
) -> None:
    """Start a session where the jobs run and say whether aqepilot is live there, and why not."""
    from aqepilot import probe
    from aqepilot.doctor import run
    from aqepilot.probe import Finding

    if script_file:
        Path(script_file).write_bytes(Path(probe.__file__).read_bytes())
        click.echo(f"spark-submit ... {script_file} PATH writes one JSON of findings to PATH.")
        return

    try:
        findings = run(submit_words, answer_in)
    except AqePilotError as error:
        if not as_json:
            raise
        findings = [Finding("error", p.code, str(p)) for p in error.problems]
    is_well = all(f.level != "error" for f in findings)
    if as_json:
        found = [f._asdict() for f in findings]
        click.echo(json.dumps({"is_well": is_well, "findings": found}, indent=2))
    else:
        styles = {"ok": "green", "warning": "yellow", "error": "bold red"}
        for f in findings:
            line = f"[{styles[f.level]}]{f.level:8}[/] {escape(f.message)} [dim]{f.code}[/]"
            _console().print(line, soft_wrap=True)
    sys.exit(0 if is_well else 1)


@main.command(
    short_help="Run one job plain and with a policy.",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@_reports_errors
def demo(words: Sequence[str]) -> None:
    """Run one job twice, plain and with a policy, and show what changed (`demo --help`)."""
    if find_spec("aqepilot.demo") is None:
        message = "the demo is not part of this installation; run `make demo` in the repository."
        raise AqePilotError(Problem("DEMO_MISSING", message))
    sys.exit(import_module("aqepilot.demo").main(list(words)))


def _print_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        click.echo(str(problem), err=True)

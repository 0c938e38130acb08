"""Commands about policies before they run: check them, submit them, begin with a recipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from aqepilot import catalog
from aqepilot.cli.options import EXIT_CODES, as_json, console, reports_errors, scala, spark, table


@click.command(
    short_help="Print the settings for policies.",
    epilog="\b\nExamples:\n"
    '  eval "spark-submit $(aqepilot conf sales.toml) job.py"\n'
    "  aqepilot conf sales.toml --format defaults >> spark-defaults.conf\n"
    "  aqepilot conf sales.toml --format json --spark 3.5 --jar-uri s3://jars/aqepilot.jar\n"
    "  aqepilot conf sales.toml --packages --spark 4.3\n"
    "  aqepilot conf sales.toml --merge $SPARK_HOME/conf/spark-defaults.conf\n\n" + EXIT_CODES,
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
@click.option(
    "--packages",
    is_flag=True,
    help="Name the jar by its Maven coordinates, which spark-submit fetches, and not by a path.",
)
@click.option("--control", metavar="PATH", help="The control file that the jobs read.")
@spark
@scala
@reports_errors
def conf(
    files: Sequence[Path],
    form: str,
    merge: Path | None,
    jar_uri: str | None,
    packages: bool,
    control: str | None,
    spark: str | None,
    scala: str | None,
) -> None:
    """Print the settings that switch aqepilot on with the policies in FILEs.

    A FILE with a table [experiment] defines one; then give the files of all its arms' policies.
    Settings go to the standard output, advice to the standard error. Without a FILE: the extension
    and its jar only.
    """
    from aqepilot.experiment import definition
    from aqepilot.policies import as_policies
    from aqepilot.submit import conf as settings
    from aqepilot.submit import jars
    from aqepilot.submit.doctor.probe import POLICIES_KEY

    policies = as_policies(path for path in files if not definition.is_one(path))
    experiments = [path for path in files if definition.is_one(path)]
    experiment = definition.of_files(experiments, policies)
    if packages and jar_uri:
        raise click.UsageError("--packages and --jar-uri both say where the jar is: give one.")
    jar = jar_uri or str(jars.find(spark, scala))
    package = jars.coordinates(Path(jar)) if packages else None
    there = settings.parse_defaults(merge.read_text("utf-8")) if merge else {}
    values = settings.settings(policies, None if package else jar, there, package)
    if experiment:
        # The arms take the place of the list.
        if POLICIES_KEY not in there:
            values.pop(POLICIES_KEY, None)
        values |= experiment.to_conf()
    if control:
        values[settings.CONTROL_KEY] = control
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


@click.command(
    short_help="Check policy files, SQL included.",
    epilog="\b\nExample:\n  aqepilot check policies/*.toml\n\n" + EXIT_CODES,
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@as_json
@reports_errors
def check(files: Sequence[Path], as_json: bool) -> None:
    """Check policy FILEs: their keys, and their SQL against the facts, in a local Spark.

    A FILE with a table [experiment] is checked together with the policies of its arms.

    Python functions are imported, also from the working directory, and asked on made facts.
    """
    from aqepilot.submit.check import check_files

    sys.path.append(str(Path.cwd()))
    problems = check_files(files)
    if as_json:
        click.echo(json.dumps({"problems": [p._asdict() for p in problems]}, indent=2))
    else:
        for problem in problems:
            click.echo(str(problem), err=True)
        if not problems:
            click.echo(f"{len(files)} polic{'y' if len(files) == 1 else 'ies'}: good.")
    sys.exit(1 if problems else 0)


@click.command(
    short_help="Show what a policy can read and answer.",
    epilog="\b\nExample:\n  aqepilot facts dynamic_join_selection\n\n" + EXIT_CODES,
)
@click.argument("point")
@as_json
@reports_errors
def facts(point: str, as_json: bool) -> None:
    """Show what a policy can read at a decision POINT, and what it may answer."""
    listed = catalog.point(point)
    if as_json:
        parts = ("words", "fields", "facts")
        rows = {part: [row._asdict() for row in getattr(listed, part)] for part in parts}
        click.echo(json.dumps(listed._asdict() | rows, indent=2))
        return
    out = console()
    out.print(f"[bold]{listed.name}[/bold]: {escape(listed.summary)}")
    out.print(f"Asked {escape(listed.asked)}. Spark's own rule: {escape(listed.built_in)}.")
    if listed.fields:
        out.print(table(("Field of the answer", "Type", "Meaning"), listed.fields))
        out.print(
            "An answer is named_struct('<field>', value, ...): fields that are not named, or are "
            "null, keep Spark's value. A null answer leaves all to Spark."
        )
    if listed.words or not listed.fields:
        words = listed.words or [(listed.answer_type, listed.answer_meaning)]
        out.print(table(("Answer", "Meaning"), [*words, ("null", "leave it to Spark")]))
    out.print(table(("Fact", "Type", "Meaning"), listed.facts))


@click.command(
    short_help="List or print Spark's own rules as policies.",
    epilog="\b\nExamples:\n  aqepilot recipes\n"
    "  aqepilot recipes dynamic_join_selection --spark 4.3 > sales.toml\n\n" + EXIT_CODES,
)
@click.argument("name", required=False)
@spark
@as_json
@reports_errors
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
        console().print(table(("Recipe", "What it is"), rows))


@click.command(
    short_help="Print the path of the jar for a Spark.",
    epilog="\b\nExample:\n  aqepilot jar --spark 3.5.6-amzn-1\n\n" + EXIT_CODES,
)
@spark
@scala
@reports_errors
def jar(spark: str | None, scala: str | None) -> None:
    """Print the path of the jar for a Spark; without --spark, for the one installed here."""
    from aqepilot.submit import jars

    click.echo(jars.find(spark, scala))


@click.command(
    short_help="Write a folder for a team's policies.",
    epilog="\b\nExamples:\n  aqepilot init policies --spark 4.3\n"
    "  aqepilot init policies --spark 3.5 --recipe hot_keys --recipe compact_files "
    "--control s3a://etc/aqepilot.json --jar-uri s3a://jars/aqepilot.jar\n\n" + EXIT_CODES,
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--recipe",
    "names",
    multiple=True,
    default=["balanced"],
    show_default=True,
    metavar="NAME",
    help="A recipe to begin with, in shadow mode; may be given several times.",
)
@click.option(
    "--control",
    metavar="PATH",
    help="The control file that all applications read; else one is made in FOLDER.",
)
@click.option(
    "--jar-uri", metavar="URI", help="Where the jar is for the jobs; else its Maven coordinates."
)
@spark
@scala
@reports_errors
def init(
    folder: Path,
    names: Sequence[str],
    control: str | None,
    jar_uri: str | None,
    spark: str | None,
    scala: str | None,
) -> None:
    """Write a FOLDER for a team's policies: recipes in shadow mode, a check for CI, settings.

    Its README.md says what each file is for. Nothing that is there is replaced.
    """
    from aqepilot import policy_folder
    from aqepilot.submit import jars

    version, built_for = jars.row_of(jars.find(spark, scala))
    where = {"--jar-uri": jar_uri} if jar_uri else {"--packages": ""}
    where |= {"--spark": version, "--scala": built_for}
    for path in policy_folder.write(folder, names, where, control, version):
        click.echo(str(path))
    click.echo(f"# Next: sh {folder / 'conf.sh'}, then {folder / 'README.md'}", err=True)


COMMANDS = (init, conf, check, facts, recipes, jar)

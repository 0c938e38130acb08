"""Binds the texts of policies in a local Spark, and asks their functions, without any job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aqepilot import gateway, session_policies, testing
from aqepilot.errors import AqePilotError, PolicyError, Problem, first_line
from aqepilot.experiment import definition
from aqepilot.function import is_imported
from aqepilot.policies import Policy, as_policies
from aqepilot.submit import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MADE = 4


def check_files(paths: Sequence[str | Path]) -> list[Problem]:
    """Checks policy files wholly: as TOML, as policies, and their SQL against the facts.

    Python functions are imported, from where this Python imports, and asked on made facts. Starts a
    local Spark of the pyspark of this Python, if one of the files gets that far.

    Args:
        paths: Policy files.

    Returns:
        What is wrong, with file, line and column; empty when all is well.
        A file of an experiment is checked with the policies that its arms name.

    Raises:
        AqePilotError: No Spark can be started here, or aqepilot is not live in it.
    """
    policies: list[Policy] = []
    problems: list[Problem] = []
    experiments = [path for path in paths if definition.is_one(path)]
    for path in paths:
        if path in experiments:
            continue
        try:
            policies.append(Policy.from_file(path))
        except PolicyError as error:
            problems.extend(error.problems)
    experiment = None
    try:
        experiment = definition.of_files(experiments, policies)
    except AqePilotError as error:
        problems.extend(error.problems)
    try:
        as_policies(policies)
    except PolicyError as error:
        problems.extend(error.problems)
    if policies or experiment:
        from aqepilot.session import check_text, status

        with local_session() as spark:
            status(spark)
            session_policies.allow(spark, gateway.session(spark), policies)
            for policy in policies:
                for key, text in policy.texts().items():
                    refused = check_text(spark, policy, key)
                    if not refused and is_imported(text):
                        refused = asked(spark, policy, key)
                    problems.extend(refused)
            if experiment and experiment.when:
                where = definition.place(experiments[0], "when")
                problems.extend(_when(spark, experiment.when, where))
    return problems


def _when(spark: SparkSession, text: str, where: str) -> list[Problem]:
    """Binds the condition of an experiment."""
    sql = "SELECT code, message, line, `column`, suggestions FROM aqepilot_check('when', :text)"
    return [
        Problem(
            row["code"],
            f"when, line {row['line'] or 1}, column {row['column'] or 1}: {row['message']}",
            where,
            tuple(row["suggestions"] or ()),
        )
        for row in spark.sql(sql, args={"text": text}).collect()
    ]


def asked(spark: SparkSession, policy: Policy, point: str) -> list[Problem]:
    """Asks the Python function of a policy on made facts; returns how it failed first, if it did.

    Args:
        spark: A session in which the function is allowed.
        policy: The policy, whose text at the point names a function that can be loaded.
        point: The decision point.
    """
    text = policy.points[point]
    sql = "SELECT reason, detail FROM aqepilot_decide(:point, :text, :facts)"
    for i, facts in enumerate(testing.made_facts(point, _MADE)):
        arguments = {"point": point, "text": text, "facts": testing.as_json(facts)}
        (row,) = spark.sql(sql, args=arguments).collect()
        if row["reason"].startswith("PYTHON_"):
            message = (
                f"on the facts aqepilot.testing.made_facts({point!r}, {_MADE})[{i}], {text} fails: "
                f"{row['detail']}"
            )
            return [Problem(row["reason"], message, policy.place(point, 1, 1))]
    return []


@contextmanager
def local_session(
    master: str | None = "local[1]",
    name: str = "aqepilot check",
    conf: Mapping[str, str] | None = None,
    is_short: bool = False,
) -> Iterator[SparkSession]:
    """Opens a Spark with aqepilot in it.

    Args:
        master: Where it runs; null for where spark-defaults.conf says, or all of this machine.
        name: What the application is called.
        conf: Further settings.
        is_short: Whether it has little to do: then half of its time would be the JVM's compiler's.

    Raises:
        AqePilotError: There is no pyspark, no Java, or a Spark runs in this Python already.
    """
    gateway.require_spark()
    java.require()
    from pyspark.sql import SparkSession

    from aqepilot.session import configure

    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        # The submitted jobs' spark-defaults.conf may log to where commands look for jobs.
        .config("spark.eventLog.enabled", "false")
        # That this machine is busy is no fault of a function's.
        .config("spark.aqepilot.ask.deadline", "1s")
    )
    if master:
        builder = builder.master(master)
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    options = _QUICK if is_short else []
    if _has_log_file():
        builder = builder.config("spark.log.level", "ERROR")
    else:
        file = (Path(__file__).parents[1] / "log4j2-errors.properties").as_uri()
        options = [*options, f"-Dlog4j2.configurationFile={file}"]
    try:
        with _jvm_options(options):
            spark = configure(builder).getOrCreate()
    except AqePilotError:
        raise
    except Exception as error:
        why = first_line(error).rstrip(".")
        message = (
            f"Spark did not start here: {why}. It takes its settings from spark-defaults.conf "
            "(SPARK_CONF_DIR), and its Java from JAVA_HOME or the PATH."
        )
        raise AqePilotError(Problem("SPARK_NOT_STARTED", message)) from error
    try:
        yield spark
    finally:
        # Spark's stage of an answer that is complete may run on, and its tasks' end is no error.
        spark.sparkContext.setLogLevel("OFF")
        spark.stop()


def _has_log_file() -> bool:
    """Whether Spark finds a log4j file of the user's."""
    home = os.environ.get("SPARK_HOME")
    folders = [os.environ.get("SPARK_CONF_DIR"), os.path.join(home, "conf") if home else None]
    files = [file for folder in folders if folder for file in Path(folder).glob("log4j*")]
    return any(file.suffix != ".template" for file in files)


# One compiler alone would have a fifth of the usual code cache. No collector is named: it would be
# the second one where spark-defaults.conf names one.
_QUICK = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]


@contextmanager
def _jvm_options(options: list[str]) -> Iterator[None]:
    """A JVM that is started meanwhile has these options, too."""
    before = os.environ.get("SPARK_SUBMIT_OPTS")
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join([*([before] if before else []), *options])
    try:
        yield
    finally:
        os.environ.pop("SPARK_SUBMIT_OPTS")
        if before is not None:
            os.environ["SPARK_SUBMIT_OPTS"] = before

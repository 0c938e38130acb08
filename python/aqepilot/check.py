"""Binds the texts of policies in a local Spark, without running any job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aqepilot.errors import AqePilotError, PolicyError, Problem
from aqepilot.policies import Policy, as_policies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_files(paths: Sequence[str | Path]) -> list[Problem]:
    """Checks policy files wholly: as TOML, as policies, and their SQL against the facts.

    Starts a local Spark of the pyspark of this Python, if one of the files gets that far.

    Args:
        paths: Policy files.

    Returns:
        What is wrong, with file, line and column; empty when all is well.

    Raises:
        AqePilotError: No Spark can be started here, or aqepilot is not live in it.
    """
    policies: list[Policy] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            policies.append(Policy.from_file(path))
        except PolicyError as error:
            problems.extend(error.problems)
    try:
        as_policies(policies)
    except PolicyError as error:
        problems.extend(error.problems)
    if policies:
        from aqepilot.session import check_texts, status

        with local_session() as spark:
            status(spark)
            for policy in policies:
                problems.extend(check_texts(spark, policy))
    return problems


@contextmanager
def local_session() -> Iterator[SparkSession]:
    """Opens a small local Spark with aqepilot in it.

    Raises:
        AqePilotError: There is no pyspark, no Java, or a Spark runs in this Python already.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        message = (
            "checking SQL needs pyspark in this Python: pip install 'pyspark==<the version your "
            "jobs run on>'."
        )
        raise AqePilotError(Problem("SPARK_NOT_FOUND", message)) from None
    from aqepilot.session import configure

    builder = (
        SparkSession.builder.master("local[1]")
        .appName("aqepilot check")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
    )
    try:
        spark = configure(builder).getOrCreate()
    except AqePilotError:
        raise
    except Exception as error:
        message = (
            f"Spark did not start here: {str(error).splitlines()[0]} It needs Java 17 or 21 "
            "(JAVA_HOME, or java on the PATH)."
        )
        raise AqePilotError(Problem("SPARK_NOT_STARTED", message)) from error
    try:
        yield spark
    finally:
        spark.stop()

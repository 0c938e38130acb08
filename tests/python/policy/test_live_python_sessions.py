"""Each session has its own Python functions, sees no other's, and takes them with it at its end."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import aqepilot
import each_point
import little
import policies
import python_policies
import tiers
from aqepilot.submit.conf import TOKEN_KEY

pytestmark = tiers.on("4.3")

QUERY = each_point.QUERIES["dynamic_join_selection"]


def known(spark: SparkSession, texts: Iterable[tuple[str, str]]) -> int:
    """How many of these functions, each with its session's token, the driver keeps."""
    functions = python_policies.session_functions(spark)
    return sum(functions.get(token, text).isDefined() for token, text in texts)


def fails(secret: str) -> Callable[[Any], Any]:
    def function(facts: Any) -> Any:
        raise ValueError(secret)

    return function


@pytest.fixture
def session(
    new_session: Callable[[], SparkSession], register_skewed: Callable[[SparkSession], None]
) -> Callable[[Callable[[Any], Any]], SparkSession]:
    """Makes a session with a function of its own, in which a query has run."""

    def made(function: Callable[[Any], Any]) -> SparkSession:
        spark = new_session()
        register_skewed(spark)
        little.settings(spark, each_point.SETTINGS)
        aqepilot.use(spark, dynamic_join_selection=function)
        spark.sql(QUERY).collect()
        return spark

    return made


def python_rows(spark: SparkSession) -> str:
    return str([row for row in aqepilot.status(spark) if row.kind == "python"])


def decided(spark: SparkSession) -> str:
    return str(aqepilot.decisions(spark)[-1].answer)


def test_a_session_sees_its_own_functions_and_failures_only(
    session: Callable[[Callable[[Any], Any]], SparkSession],
) -> None:
    one, other = session(fails("sugar")), session(fails("salt"))
    assert "ValueError: sugar" in python_rows(one)
    assert "ValueError: salt" in python_rows(other)
    assert "salt" not in python_rows(one)
    assert "sugar" not in python_rows(other)
    assert one.conf.get(TOKEN_KEY) != other.conf.get(TOKEN_KEY)


def test_a_session_that_goes_back_gives_up_its_processes(
    session: Callable[[Callable[[Any], Any]], SparkSession],
) -> None:
    spark = session(lambda facts: "SHUFFLE_HASH")
    assert "SHUFFLE_HASH" in decided(spark)
    assert "running" in python_rows(spark)
    aqepilot.use(spark, dynamic_join_selection="'SHUFFLE_MERGE'")
    assert python_rows(spark) == "[]"
    aqepilot.use(spark, dynamic_join_selection=lambda facts: "SHUFFLE_MERGE")
    spark.sql(QUERY).collect()
    assert "SHUFFLE_MERGE" in decided(spark)
    assert "running" in python_rows(spark)


def test_a_text_stands_for_nothing_in_a_session_that_did_not_bring_it(
    session: Callable[[Callable[[Any], Any]], SparkSession], spark: SparkSession
) -> None:
    one = session(lambda facts: "SHUFFLE_HASH")
    key = "spark.aqepilot.policy.session.dynamic_join_selection"
    text = one.conf.get(key)
    assert text is not None
    checked = "SELECT code, message FROM aqepilot_check('dynamic_join_selection', :text)"
    assert one.sql(checked, {"text": text}).collect() == []
    (problem,) = spark.sql(checked, {"text": text}).collect()
    assert problem.code == "PYTHON_LOAD_FAILED"
    assert "this session did not bring" in problem.message


def test_a_policy_that_is_refused_leaves_no_setting(spark: SparkSession) -> None:
    with pytest.raises(aqepilot.PolicyError):
        aqepilot.use(spark, dynamic_join_selection="python:no_such_module:f")
    assert spark.conf.get(TOKEN_KEY, None) is None
    aqepilot.use(spark, dynamic_join_selection=lambda facts: None)
    token = spark.conf.get(TOKEN_KEY)
    with pytest.raises(aqepilot.PolicyError):
        aqepilot.use(spark, dynamic_join_selection="python:no_such_module:f")
    assert spark.conf.get(TOKEN_KEY) == token


def test_what_spark_copies_of_a_session_has_its_functions(
    session: Callable[[Callable[[Any], Any]], SparkSession],
) -> None:
    spark = session(lambda facts: "SHUFFLE_HASH")
    before = len(policies.decisions(spark))
    assert spark.sql(QUERY).cache().count()
    spark.catalog.clearCache()
    reasons = {d.reason for d in policies.decisions(spark)[before:] if d.policy == "session"}
    assert "APPLIED" in reasons
    assert not [reason for reason in reasons if reason.startswith("PYTHON_")]


def test_what_a_session_brought_ends_with_it(
    new_session: Callable[[], SparkSession], spark: SparkSession
) -> None:
    key = "spark.aqepilot.policy.session.shuffle_partitions"
    brought = []
    sessions = [new_session() for _ in range(5)]
    for number, own in enumerate(sessions, 1):
        aqepilot.use(own, shuffle_partitions=lambda facts, number=number: number)
        # Not run: Spark's threads that wait for stages keep who started them for a minute more.
        query = own.sql("SELECT count(*) FROM range(9) GROUP BY id % 3")
        planned = query._jdf.queryExecution().executedPlan()
        assert f", {number}), ENSURE_REQUIREMENTS" in planned.toString()
        brought.append((own.conf.get(TOKEN_KEY), own.conf.get(key)))
    assert known(spark, brought) == len(sessions)
    del own, query, planned
    sessions.clear()
    new_session()  # PySpark keeps the newest one
    assert spark._jvm is not None
    spark._jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
    end = time.monotonic() + 120
    while known(spark, brought) and time.monotonic() < end:
        gc.collect()
        spark._jvm.System.gc()
        time.sleep(0.1)
    assert known(spark, brought) == 0

"""A query is cancelled while its policy is being asked: it ends, and the session goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import each_point
import little
import policies
import tiers
from rows import assert_same_rows
from waiting import until

# Millions of additions, which cannot be worked out before the facts are there.
LONG = "cluster.default_parallelism"
for i in range(4):
    numbers = ", ".join(f"{n}L" for n in range(40))
    LONG = f"aggregate(array({numbers}), 0L, (sum{i}, n{i}) -> sum{i} + n{i} % 7 + {LONG})"


class JavaThread:
    """A query that is collected on a Java thread of its own, or written there."""

    def __init__(self, spark: SparkSession, sql: str) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.java
        callable_class = self._java.lang.Class.forName("java.util.concurrent.Callable")
        run = (
            (spark.sql(sql)._jdf, "collectAsList")
            if sql != each_point.WRITE
            else self._write(spark)
        )
        collect = self._java.beans.EventHandler.create(callable_class, *run)
        self._task = self._java.util.concurrent.FutureTask(collect)
        self.thread = self._java.lang.Thread(self._task)
        self.thread.start()

    @staticmethod
    def _write(spark: SparkSession) -> tuple[Any, str]:
        """The same rows by a writer: as a text of SQL, a command runs where it is parsed."""
        writer = spark.sql(each_point.WRITTEN)._jdf.write().mode("overwrite").format("parquet")
        return writer.option("path", each_point.FOLDER), "save"

    def is_asking(self) -> bool:
        """Is a policy's text being evaluated there just now?"""
        stack = self._java.util.Collections.singletonList(self.thread.getStackTrace())
        return "SqlPolicy.eval" in self._java.util.Arrays.deepToString(stack.toArray())

    def is_done(self) -> bool:
        return bool(self._task.isDone())

    def rows(self) -> list[tuple[str]]:
        return [(str(row.toString()),) for row in self._task.get() or []]


@pytest.fixture
def session(skewed_tables: SparkSession) -> Iterator[SparkSession]:
    """Its queries run as jobs of one group and tag."""
    spark = skewed_tables
    little.settings(spark, each_point.SETTINGS)
    spark.sparkContext.setJobGroup("cancelled", "cancelled", interruptOnCancel=True)
    spark.sparkContext.addJobTag("cancelled")
    yield spark
    spark.sparkContext.clearJobTags()
    for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
        spark.sparkContext.setLocalProperty(key, None)  # type: ignore[arg-type]


CANCEL: dict[str, Callable[[SparkSession, JavaThread], Any]] = {
    "group": lambda spark, _: spark.sparkContext.cancelJobGroup("cancelled"),
    "tag": lambda spark, _: spark.sparkContext.cancelJobsWithTag("cancelled"),
    "all": lambda spark, _: spark.sparkContext.cancelAllJobs(),
    "interrupt": lambda _, query: query.thread.interrupt(),
}


@pytest.mark.parametrize(
    ("point", "how"),
    tiers.share(
        [
            *((point, "interrupt") for point in each_point.POINTS),
            # While a query is planned, there is no job that these could end.
            *((point, "group") for point in each_point.POINTS if point not in each_point.PLANNING),
            *(("cost_evaluation", how) for how in ("tag", "all")),
        ]
    ),
)
def test_a_query_cancelled_while_its_policy_is_asked(
    session: SparkSession, plain: Any, point: str, how: str
) -> None:
    """It ends as cancelled or with the right rows; the session's next query is as decided."""
    spark, sql = session, each_point.QUERIES[point]
    with plain(spark):
        before = each_point.run(spark, sql)
        rows = JavaThread(spark, sql).rows()
    text = each_point.SETS["one"][point]
    each_point.use(spark, {point: f"CASE WHEN {LONG} >= 0 THEN {text} END"})
    query = JavaThread(spark, sql)
    assert until(lambda: query.is_asking() or query.is_done())
    assert not query.is_done(), policies.status(spark, "problem")
    CANCEL[how](spark, query)
    assert until(query.is_done)
    if how == "interrupt" and sql == each_point.WRITE:
        # Where Hadoop makes a folder by a command, it takes the thread's interrupt for its own.
        try:
            query.rows()
        except Py4JJavaError as e:
            if "InterruptedException" not in str(e):
                raise
    elif how == "interrupt":
        with pytest.raises(Py4JJavaError, match="InterruptedException"):
            query.rows()
    else:
        # Jobs are cancelled; the query finishes where none was running just then.
        try:
            assert_same_rows(query.rows(), rows)
        except Py4JJavaError as e:
            if "cancelled" not in str(e):
                raise
    each_point.use(spark, {point: text})
    after = each_point.run(spark, sql)
    assert_same_rows(after.rows, before.rows)
    assert after.effects[point] == each_point.EFFECTS["one"][point]

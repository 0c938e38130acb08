"""Runs a drawn query without and with drawn policies, compares, and counts what was decided."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from pyspark.sql import functions

import fuzz_history
import fuzz_partitions
import fuzz_policies
import fuzz_pruning
import fuzz_queries
import python_policies
import scala_objects
from fuzz_history import WrongHistory
from fuzz_queries import Query
from rows import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


# Each query has code of its own, which takes longer to compile well than to run, even of many
# thousands; what is collected is garbage mostly.
LONG = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m"
    " -XX:+UseSerialGC -Xmn600m",
    "spark.buffer.pageSize": "64k",
    # As much is allocated for each broadcast, of which each stage is one.
    "spark.broadcast.blockSize": "64k",
    "spark.shuffle.checksum.enabled": "false",
    "spark.broadcast.checksum": "false",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    # Without a checksum beside each file: half as many processes that set a file's permissions.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}

# How many sets of policies an example has; one is what a failing example shrinks to.
SETS = [1, *[6] * 9]


# An example of more says nothing further, and is not compared.
MOST_ROWS = 5000


class Example(NamedTuple):
    """A query, the session settings under which it runs, and sets of policies, run one by one.

    Attributes:
        query: The query.
        settings: Those of the session.
        policies: As settings, by set.
        salt: What the history's random figures depend on.
    """

    query: Query
    settings: dict[str, str]
    policies: list[dict[str, str]]
    salt: int = 0

    def __repr__(self) -> str:
        """The example as a Python script; the result is plain Spark's without policies."""
        lines = _statements(self.settings)
        lines += self.query.steps
        lines.append(f"# {self.query.action}")
        if self.salt:
            lines.append(f"# history: wrong by salt {self.salt}")
        for number, policies in enumerate(self.policies, 1):
            lines.append(f"# policies {number} of {len(self.policies)}")
            lines += _statements(policies)
        return "\n".join(["", *lines, ""])


def _statements(settings: dict[str, str]) -> list[str]:
    return [f"spark.conf.set({key!r}, {value!r})" for key, value in sorted(settings.items())]


@st.composite
def examples(draw: st.DrawFn, has_history: bool = False) -> Example:
    """Draws an example.

    Args:
        draw: Draws.
        has_history: Whether policies decide by a history, which is wrong.
    """
    sets = draw(st.sampled_from(SETS))
    known = {p: fuzz_history.texts(p) for p in fuzz_policies.POINTS} if has_history else {}
    texts = draw(fuzz_policies.texts(known))
    query = draw(fuzz_queries.queries())
    settings = draw(fuzz_policies.settings())
    policies = [draw(fuzz_policies.policies(texts)) for _ in range(sets)]
    if has_history:
        policies = [draw(fuzz_history.policies(drawn)) for drawn in policies]
    if draw(st.integers(0, 11)) == 11:
        step = f'result = spark.sql("{draw(fuzz_pruning.statements())}")'
        query = Query((step,), "collect", is_ordered=False)
        settings |= fuzz_pruning.SETTINGS
    elif query.action == "collect" and draw(st.integers(0, 7)) == 7:
        query = query._replace(action="barrier")
    if query.action == "barrier":
        settings |= fuzz_partitions.MERGED
    return Example(query, settings, policies, draw(st.integers(1, 2**32)) if has_history else 0)


class Anew(HypothesisProvider):
    """Draws each example by itself.

    Hypothesis' own way makes five of six examples by copying a part of another over it: queries
    alike, each of which takes as long as a new one.
    """


AVAILABLE_PROVIDERS["anew"] = f"{__name__}.Anew"


class UndefinedError(Exception):
    """Plain Spark fails on the example, or gives other rows each time."""


class Tally:
    """What happened over all examples.

    Attributes:
        examples: Runs with policies that were compared.
        queries: How many queries they are runs of.
        rejected: Those that plain Spark could not run, by its error, or whose rows it does not
            define.
        decisions: By decision point and reason.
        fates: Of the applied decisions, by decision point and fate.
        learned: By decision point, the applied decisions of recipes that decide by history.
    """

    def __init__(self) -> None:
        self.examples = 0
        self.queries = 0
        self.rejected: Counter[str] = Counter()
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.fates: Counter[tuple[str, str | None]] = Counter()
        self.learned: Counter[str] = Counter()
        self.rows = 0

    def add(self, run: Decided) -> None:
        self.examples += run.examples
        self.rows += run.rows
        self.decisions.update((d.point, d.reason) for d in run.decisions)
        self.fates.update((d.point, d.fate) for d in run.decisions if d.applied)
        self.learned.update(
            d.point for d in run.decisions if d.applied and d.policy in fuzz_history.RECIPES
        )

    def asked(self, point: str) -> int:
        return sum(count for (name, _), count in self.decisions.items() if name == point)

    def applied(self, point: str) -> int:
        return self.decisions[point, "APPLIED"]

    def adopted(self, point: str) -> int:
        return self.fates[point, "adopted"]

    def __str__(self) -> str:
        rejected = sum(self.rejected.values())
        lines = [
            f"{self.examples} examples of {self.queries} queries, {self.rows} rows;"
            f" {rejected} queries left out",
            *(f"  {count} x {error}" for error, count in self.rejected.most_common()),
        ]
        for point in fuzz_policies.POINTS:
            lines.append(
                f"{point}: {self.asked(point)} decisions asked, {self.applied(point)} applied,"
                f" {self.adopted(point)} adopted"
            )
            for counts in (self.decisions, self.fates):
                of_point = ((k[1], n) for k, n in counts.most_common() if k[0] == point)
                lines.append("  " + ", ".join(f"{name} {n}" for name, n in of_point))
        if self.learned:
            counts = ", ".join(f"{point} {n}" for point, n in self.learned.most_common())
            lines.append(f"applied by history: {counts}")
        return "\n".join(lines)


class Decided(NamedTuple):
    """The decisions of an example's runs with policies, how many those were, and their rows."""

    decisions: list[Row]
    examples: int
    rows: int


class Runner:
    """Runs examples in one session, whose settings are an example's own each time.

    A new session for each would stay in the driver's memory as long as Python holds it, and takes
    as long to make as a small query to run.
    """

    def __init__(self, spark: SparkSession, history: WrongHistory | None = None) -> None:
        self._spark = spark
        self._history = history
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsparkSession.sessionState().conf()
        ours = "org.apache.spark.sql.aqepilot"
        self._log: Any = scala_objects.get(spark, f"{ours}.record.DecisionLog").getActive().get()
        self._policies: Any = scala_objects.get(spark, f"{ours}.run.PoliciesInForce")
        folder = Path(tempfile.mkdtemp())
        (folder / "by_turns.py").write_text(fuzz_policies.BY_TURNS, encoding="utf-8")
        for point in fuzz_policies.POINTS:
            python_policies.allow(spark, point, folder, "by_turns")
        submitted = self._conf.getAllConfs()
        self._submitted = "".join(
            f"{pair._1()}={pair._2()}\n"
            for pair in (submitted.toSeq().apply(i) for i in range(submitted.size()))
        )
        self._last = 0
        spark.udf.register("py", lambda value: None if value is None else value % 7, "bigint")
        spark.udf.register("pandas_py", functions.pandas_udf(lambda values: values * 2, "bigint"))

    def check(self, example: Example) -> Decided:
        """Fails unless the example's rows are the same without and with each set of policies.

        Raises:
            UndefinedError: The example says nothing.
        """
        query = example.query
        if self._history:
            self._history.begin(example.salt)
        try:
            self._set(example.settings | {"spark.aqepilot.mode": "off"})
            result = _built(self._spark, query)
            query = query._replace(
                action=fuzz_partitions.plain_action(result, query.action, is_cached=query.is_cached)
            )
            expected = _acted(self._spark, result, query)
        except Exception as error:
            raise UndefinedError(_shortly(error)) from error
        finally:
            _dropped(self._spark, query)
        if len(expected) > MOST_ROWS:
            raise UndefinedError("too many rows")
        if self._history:
            self._history.settle()
        faults = self._faults()
        rows = 0
        for policies in example.policies:
            self._set(example.settings | policies)
            problems = self._policies.of(self._conf).problems()
            assert problems.isEmpty(), problems.toString()
            try:
                actual = self._again(query, result)
                rows += len(actual)
                _assert_same(actual, expected, query)
            except Exception as error:
                if self._is_undefined(example, expected, error, query) or (
                    isinstance(error, AssertionError)
                    and self._passed(example, policies, expected, query)
                ):
                    raise UndefinedError(f"plain Spark's, too: {_shortly(error)}") from error
                raise
        decisions = self._decisions()
        failed = [d for d in decisions if d.reason == "INTERNAL_ERROR"]
        assert not failed, [(d.point, d.detail) for d in failed]
        assert self._faults() == faults
        return Decided(decisions, len(example.policies), rows)

    def _set(self, settings: dict[str, str]) -> None:
        """Makes these the session's only settings beside those that it was submitted with."""
        properties = self._jvm.java.util.Properties()
        lines = {key: value.replace("\n", "\\n") for key, value in settings.items()}
        text = self._submitted + "".join(f"{key}={value}\n" for key, value in lines.items())
        properties.load(self._jvm.java.io.StringReader(text))
        self._conf.clear()
        self._conf.setConf(properties)

    def _again(self, query: Query, result: DataFrame) -> list[Row]:
        """Plans and runs the query again; what is cached is built again, too."""
        try:
            if query.is_cached:
                result = _built(self._spark, query)
            return _acted(self._spark, result.alias("again"), query)
        finally:
            _dropped(self._spark, query)

    def _decisions(self) -> list[Row]:
        """What was decided since the last call."""
        self._set({})
        decisions = self._spark.sql(
            "SELECT decision_id, point, policy, reason, detail, applied, fate"
            f" FROM aqepilot_decisions() WHERE decision_id > {self._last}"
        ).collect()
        self._last = max((d.decision_id for d in decisions), default=self._last)
        return decisions

    def _faults(self) -> list[str]:
        """How often we failed in this driver."""
        return re.findall(r"\(errors[^)]*\)", self._log.counters().mkString(","))

    def _passed(
        self, example: Example, policies: dict[str, str], expected: list[Row], query: Query
    ) -> bool:
        """Whether partitions that were others are plain Spark's when the query runs again."""
        if query.action not in fuzz_partitions.ACTIONS:
            return False
        self._set(example.settings | policies)

        def again() -> list[Row]:
            return _acted(self._spark, _built(self._spark, query), query)

        return not fuzz_partitions.happens_again(again, expected)

    def _is_undefined(
        self, example: Example, expected: list[Row], fault: Exception, query: Query
    ) -> bool:
        """Whether plain Spark does so, too: now and then, not adaptive, by other joins.

        3.5's re-plans lose the order of a query that joins the first rows of another order, unless
        the join is a broadcast. Spark infers a filter from a join's condition, and whether that
        filter throws depends on which of the join's sides is done first: an empty one cancels the
        other. Two copies of a frame with random numbers have the same ones where Spark plans both
        alike; whether a re-plan comes between them depends on which stage ends first, and that on
        the machine's load.
        """

        def does_so(settings: dict[str, str]) -> bool:
            self._set(example.settings | settings | {"spark.aqepilot.mode": "off"})
            try:
                actual = _acted(self._spark, _built(self._spark, query), query)
                _assert_same(actual, expected, query)
            except AssertionError:
                return isinstance(fault, AssertionError)
            except Exception as error:
                return _shortly(error) == _shortly(fault)
            finally:
                _dropped(self._spark, query)
            return False

        has_random_numbers = any("rand()" in step for step in query.steps)
        settings: list[dict[str, str]] = [{}] * (20 if has_random_numbers else 3)
        # Other settings give other partitions.
        if query.action not in fuzz_partitions.ACTIONS:
            settings.append({"spark.sql.adaptive.enabled": "false"})
            # Without the broadcast Spark would read what it prunes.
            if not fuzz_pruning.is_pruned(query):
                settings.append({"spark.sql.autoBroadcastJoinThreshold": "-1"})
        return any(map(does_so, settings))


def _built(spark: SparkSession, query: Query) -> DataFrame:
    names: dict[str, Any] = {"spark": spark, "F": functions}
    exec("\n".join(query.steps), names)
    result: DataFrame = names["result"]
    return result


def _dropped(spark: SparkSession, query: Query) -> None:
    """Drops what is cached: another run would read its rows instead of planning it."""
    if query.is_cached:
        spark.catalog.clearCache()
        for step in query.steps:
            for name in re.findall("CACHE LAZY TABLE (\\w+)", step):
                spark.catalog.dropTempView(name)


def _acted(spark: SparkSession, df: DataFrame, query: Query) -> list[Any]:
    if query.action in fuzz_queries.WRITES:
        return _written(spark, df, query)
    if query.action in fuzz_partitions.ACTIONS:
        return fuzz_partitions.counted(df, query.action)
    if query.action == "partitions":
        df.collect()  # an RDD of its own would have plain Spark's
        partitions = df.rdd.glom().collect()
        rows = [row for partition in partitions for row in partition]
        places = {
            (row[0], place) for place, partition in enumerate(partitions) for row in partition
        }
        is_as_asked = len(partitions) == query.partitions and len(places) == len(
            {row[0] for row in rows}
        )
        return [*rows, ("partitions as asked for",)] if is_as_asked else rows
    if query.action == "rdd":
        return df.rdd.collect()
    return list(df.toLocalIterator()) if query.action == "toLocalIterator" else df.collect()


def _written(spark: SparkSession, df: DataFrame, query: Query) -> list[Any]:
    """Writes the rows, and reads them back with the values of their directories.

    Of numbers with a point, 0.0 and -0.0 are two directories that plain Spark may open twice.
    """
    names = [name for name, kind in df.dtypes if kind in ("bigint", "int", "string", "date")]
    by = [name for name in names if df.columns.count(name) == 1][: query.partition_columns]
    with tempfile.TemporaryDirectory() as folder:
        writer = df.write.mode("overwrite").partitionBy(*by if len(by) < len(df.columns) else ())
        if query.action == "write":
            writer.parquet(folder)
            return spark.read.schema(df.schema).parquet(folder).collect()
        try:
            writer.option("path", f"{folder}/written").saveAsTable("written")
            return spark.table("written").collect()
        finally:
            spark.sql("DROP TABLE IF EXISTS written")


def _assert_same(actual: list[Any], expected: list[Any], query: Query) -> None:
    """As `assert_same_rows`, which takes long where all is alike."""
    here, there = list(map(repr, actual)), list(map(repr, expected))
    if here != there and (query.is_ordered or Counter(here) != Counter(there)):
        assert_same_rows(actual, expected, ordered=query.is_ordered)


def _shortly(error: Exception) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:160]

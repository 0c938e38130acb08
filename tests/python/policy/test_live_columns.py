"""PySpark Columns as policies, in a running Spark."""

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

import aqepilot
import little
import tiers
from aqepilot import PolicyError, column

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

POINT = "dynamic_join_selection"


def chosen(condition):
    return F.when(condition, "SHUFFLE_HASH")


def sizes():
    return F.col("side.bytes_by_partition_id")


# Before 4.0 a Column needs a running Spark.
CASES = {
    "a comparison": lambda: chosen(F.col("side.max_bytes") > 10 * F.col("side.median_bytes")),
    "a word": lambda: F.lit("SHUFFLE_HASH"),
    "null": lambda: F.lit(None),
    "logic": lambda: chosen(
        ~F.col("side.is_left") & F.col("side.row_count").isNull()
        | F.col("join.type").isin("INNER", "CROSS")
    ),
    "arithmetic": lambda: chosen((F.col("side.max_bytes") % 7 - 3) * 2 / 5 >= -F.lit(1.5)),
    "quotes": lambda: chosen(F.col("query.app_name") == 'it\'s "a" \\n \n `b` (c, d) ${e} é'),
    "patterns": lambda: chosen(
        F.col("query.app_name").rlike(r"^app_\w+\s[a]$") | F.col("query.user").like(r"u%\_")
    ),
    "casts": lambda: chosen(F.col("side.max_bytes").cast("decimal(20,2)") > F.lit(2**40)),
    "special numbers": lambda: chosen(F.col("side.non_empty_ratio") < F.lit(float("inf"))),
    "a lambda": lambda: chosen(F.exists(sizes(), lambda b: b > 5 * F.col("side.median_bytes"))),
    "lambdas in lambdas": lambda: chosen(
        F.exists(sizes(), lambda b: F.forall(sizes(), lambda c: c <= b * 2))
    ),
    "lambdas of two": lambda: chosen(
        F.aggregate(sizes(), F.lit(0).cast("bigint"), lambda total, b: total + b) > 2**30
    ),
    "branches": lambda: (
        F.when(F.col("side.is_left"), chosen(F.col("side.max_bytes") > 5).otherwise("BROADCAST"))
        .when(F.col("side.row_count") < 10, F.coalesce(F.col("spark.hint"), F.lit("X")))
        .otherwise(None)
    ),
    "elements": lambda: chosen(F.col("side.tables")[0] == F.element_at(F.col("other.tables"), -1)),
    "SQL": lambda: chosen(F.expr("side.max_bytes > aqepilot_bytes('64MB')")),
    "a name": lambda: chosen(F.col("side.is_left")).alias("an answer"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_column_becomes_a_text_that_means_the_same(spark, case):
    text = column.to_sql(spark, POINT, CASES[case]())
    rows = spark.sql("SELECT * FROM aqepilot_check(:p, :t)", args={"p": POINT, "t": text})
    assert rows.collect() == []
    assert text == column.to_sql(spark, POINT, CASES[case]())


@pytest.mark.parametrize(
    "answer",
    [
        lambda: F.struct(F.lit(2.0).alias("skew_factor"), F.lit(True).alias("force")),
        lambda: F.struct(
            F.transform(
                F.col("left.bytes_by_partition_id"),
                lambda b: F.ceil(b / F.col("left.median_bytes")).cast("int"),
            ).alias("left_splits")
        ),
    ],
)
def test_a_struct_names_only_what_it_decides(spark, answer):
    decided = F.when(F.col("left.max_bytes") > 10, answer())
    assert "named_struct('" in column.to_sql(spark, "skew_join", decided)


def test_people_can_read_it(spark):
    text = column.to_sql(
        spark, POINT, chosen(F.col("side.max_bytes") > 10 * F.col("side.row_count"))
    )
    said_so = "CASE WHEN (side.max_bytes > (side.row_count * 10)) THEN 'SHUFFLE_HASH' END"
    assert text == said_so


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda: chosen(F.rand() > 0.5), "'rand' is not allowed"),
        (lambda: F.udf(lambda b: "X")("side.max_bytes"), "Syntax error"),
        (lambda: F.max("side.max_bytes"), "is an aggregate"),
        (lambda: F.row_number().over(Window.orderBy("side.max_bytes")), "no policy"),
        (lambda: chosen(F.col("side.max_byte") > 1), "no fact 'side.max_byte'"),
        (lambda: F.col("side.max_bytes"), "must be a string"),
        (lambda: chosen(F.current_date().isNull()), "current_date"),
    ],
)
def test_a_column_without_a_text_that_binds_is_refused_and_nothing_is_set(spark, answer, why):
    with pytest.raises(PolicyError, match=why) as caught:
        aqepilot.use(spark, dynamic_join_selection=answer())
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("COLUMN_NOT_SQL", f"session.{POINT}")
    assert spark.conf.get("spark.aqepilot.policies", None) is None


@pytest.mark.parametrize(
    ("true", "false"),
    [(" > ", " >= "), ("'SHUFFLE_HASH'", "'shuffle_hash'"), ("'SHUFFLE_HASH'", "NULL")],
)
def test_a_text_that_means_something_else_is_refused(spark, monkeypatch, true, false):
    readable = column.readable
    monkeypatch.setattr(column, "readable", lambda sql: readable(sql).replace(true, false))
    one = chosen(F.col("side.num_partitions") > 8)
    with pytest.raises(PolicyError, match="where the Column gives"):
        column.to_sql(spark, POINT, one)


@pytest.mark.parametrize("key", ["ansi.enabled", "caseSensitive", "parser.escapedStringLiterals"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_the_sessions_own_settings_do_not_matter_and_stay(spark, key, value):
    if (key, value) == ("parser.escapedStringLiterals", "true") and spark.version >= "4.1":
        pytest.skip("from 4.1 on Spark's own parameters of a query are garbled there")
    spark.conf.set(f"spark.sql.{key}", value)
    column.to_sql(spark, POINT, chosen(F.col("side.size_in_bytes") / F.col("side.row_count") > 1))
    column.to_sql(spark, POINT, chosen(F.col("query.app_name") == "\\d 'x'"))
    assert spark.conf.get(f"spark.sql.{key}") == value


def test_no_job_runs_for_it(spark):
    spark.sparkContext.setJobGroup("columns", "no job is to run")
    try:
        column.to_sql(spark, POINT, CASES["a lambda"]())
    finally:
        for key in ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel"):
            spark.sparkContext.setLocalProperty(key, None)
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("columns")) == []


def test_a_column_in_use_decides(little_tables):
    spark = little_tables
    hash_left = F.when(F.col("side.is_left"), "SHUFFLE_HASH")
    aqepilot.use(spark, {"name": "trial", "mode": "shadow", POINT: hash_left})
    little.settings(spark, little.SORT_MERGE)
    spark.sql(little.BIG_DENSE).collect()
    answers = {(d.side, d.policy, d.answer) for d in aqepilot.decisions(spark)}
    assert ("left", "trial", "SHUFFLE_HASH") in answers

"""Who reads a part with rand() twice sees the same rows, whatever a policy says each time.

The part is a WITH query, or a DataFrame that is used again. Spark plans it for each reader, and
runs it once because the plans are equal.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession, functions

import aqepilot
import policies
import tiers

BODIES = {
    "join": "SELECT f.n, rand() AS r FROM f JOIN d ON f.k = d.k",
    # By other keys, so that each order leaves the rows in other partitions.
    "joins": """SELECT f.n, rand() AS r FROM f JOIN d ON f.k = d.k JOIN e ON e.k = f.n % 5
        JOIN (SELECT k, max(n) AS m FROM f GROUP BY k) g ON g.k = f.n % 3""",
    "left join": "SELECT f.n, rand() AS r FROM f LEFT JOIN d ON f.k = d.k",
    "in": "SELECT f.n, rand() AS r FROM f WHERE f.k IN (SELECT k FROM d)",
    # Spark sees that it is a shuffle, and adds none.
    "repartitioned": "SELECT /*+ REPARTITION(3) */ f.n, rand() AS r FROM f JOIN d ON f.k = d.k",
    "rebalanced": "SELECT /*+ REBALANCE */ f.n, rand() AS r FROM f JOIN d ON f.k = d.k",
    "scalar subquery": """SELECT f.n, (SELECT max(r) FROM (SELECT rand() * f.n AS r FROM f
        JOIN d ON f.k = d.k)) AS r FROM f JOIN e ON f.k = e.k""",
}
# Each is 0 where both see the same rows.
READERS = {
    "anti join": "SELECT count(*) FROM v x LEFT ANTI JOIN v y ON x.n = y.n AND x.r = y.r",
    "set": "SELECT count(*) FROM (SELECT n, r FROM v EXCEPT SELECT n, r FROM v)",
    "at two depths": """SELECT count(*) FROM (SELECT x.n, x.r FROM v x JOIN d ON x.n % 7 = d.k) x
        LEFT ANTI JOIN (SELECT y.n, y.r FROM v y JOIN e ON y.n % 7 = e.k) y
        ON x.n = y.n AND x.r = y.r""",
}
SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.codegen.wholeStage": "false",
}


def by_turns(*answers: Any) -> Any:
    """A function that gives one answer after the other."""
    count = [0]

    def answer(facts: Any) -> Any:
        count[0] += 1
        return answers[count[0] % len(answers)]

    return answer


POLICIES = {
    "join_selection": by_turns(
        {"strategy": "SHUFFLE_MERGE"},
        {"strategy": "BROADCAST", "build_side": "RIGHT"},
        {"strategy": "SHUFFLE_HASH", "build_side": "RIGHT"},
    ),
    "dynamic_join_selection": by_turns("SHUFFLE_HASH", "SHUFFLE_MERGE", "BROADCAST"),
    "skew_join": by_turns(
        {"left_splits": [2, 2, 2, 2], "force": True}, {"left_splits": [1, 1, 1, 1], "force": True}
    ),
    "partition_coalescing": by_turns({"local_read": True}, {"keep": True}, {"target_bytes": 1}),
    # The optimiser sees a WITH query once.
    "join_reorder": by_turns([0, 1, 2, 3], [0, 3, 2, 1], [0, 2, 1, 3]),
    # These decide the equal parts of WITH queries alike by themselves.
    "shuffle_partitions": by_turns(3, 5, 7),
    "cost_evaluation": by_turns(1.0, 9.0, 5.0),
}
ALIKE = ["shuffle_partitions", "cost_evaluation"]
ONCE = ["join_reorder"]
ENDED = ["repartitioned", "rebalanced"]
# The first of two tests runs every other one of these, and the second the rest.
PAIRS = tiers.share(product(POLICIES, BODIES))
STEP = 1 if tiers.ALL else 2


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    for name, rows in (("f", 60), ("d", 7), ("e", 7)):
        rows_of = f"SELECT id AS n, id % 7 AS k FROM range(0, {rows}, 1, 2)"
        spark.sql(rows_of).createOrReplaceTempView(name)
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    return spark


@pytest.mark.parametrize(("point", "body"), PAIRS[::STEP])
def test_all_readers_see_the_same_rows(tables: SparkSession, body: str, point: str) -> None:
    aqepilot.use(tables, **{point: POLICIES[point]})
    # An even number of readers more, and both turns would always fall on the same one.
    for reader in [*READERS.values(), READERS["set"]]:
        sql = f"WITH v AS ({BODIES[body]}) {reader}"
        assert tables.sql(sql).collect()[0][0] == 0, reader
    # A shuffle of the body's own counts as a DataFrame's, not as the one that ends a WITH query.
    is_left = point not in ONCE if body in ENDED else point not in ALIKE + ONCE
    assert ("NON_DETERMINISTIC_CTE" in policies.reasons(tables)) == is_left


@pytest.mark.parametrize(("point", "body"), PAIRS[STEP - 1 :: STEP])
def test_a_frame_used_again_has_the_same_rows(tables: SparkSession, body: str, point: str) -> None:
    aqepilot.use(tables, **{point: POLICIES[point]})
    df = tables.sql(BODIES[body])
    # An odd number of readers: else both turns would always fall on the same one.
    assert df.join(df, ["n", "r"], "left_anti").count() == 0
    assert df.exceptAll(df).count() == 0
    reasons = policies.reasons(tables)
    # Without a chain of joins there is no order, and without a changed plan no cost.
    if point not in [*ONCE, "cost_evaluation"] or body == "joins":
        assert reasons - {"NOT_ASKED"} <= {"NON_DETERMINISTIC_CTE"}
        assert reasons or point == "cost_evaluation"
    assert "APPLIED" not in reasons


@tiers.EIGHTH
@pytest.mark.parametrize("strategy", ["BROADCAST", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"])
def test_what_joins_two_uses_of_a_frame_is_left_to_spark(
    tables: SparkSession, strategy: str
) -> None:
    """Without a shuffle on each, Spark reads one in whole partitions and the other locally."""
    df = tables.sql("SELECT a.n, rand() AS r FROM f a JOIN f b ON a.n = b.n AND a.n % 3 = 0")
    aqepilot.use(
        tables,
        join_selection=f"named_struct('strategy', '{strategy}', 'build_side', 'RIGHT')",
        dynamic_join_selection="'SHUFFLE_MERGE'",
        shuffle_partitions="12",
    )
    tables.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "3KB")
    tables.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    again = df.join(df, ["n", "r"], "left_semi").select("n").distinct()
    assert again.count() == df.count() == 20
    assert "NON_DETERMINISTIC_CTE" in policies.reasons(tables)


def test_a_use_under_other_names_is_a_use(tables: SparkSession) -> None:
    """3.5 gives the second use a projection of its own, in which the columns are renamed."""
    tables.sql(
        """CREATE OR REPLACE TEMPORARY VIEW named AS SELECT p.k, p.n FROM (SELECT n, k FROM (
        SELECT id AS n, if(id % 10 < 4, 7, id % 7) AS k FROM range(0, 60, 1, 2))) p
        RIGHT JOIN f ON p.k = f.k AND p.k > 1 JOIN (SELECT DISTINCT k FROM d) r ON p.k <=> r.k"""
    )
    df = tables.table("named").withColumn("r", functions.rand())
    before = df.join(df, ["k", "n", "r"], "left_semi").count()
    aqepilot.use(tables, join_selection=POLICIES["join_selection"])
    for _ in range(3):
        assert df.join(df, ["k", "n", "r"], "left_semi").count() == before
    assert "NON_DETERMINISTIC_CTE" in policies.reasons(tables)


def test_what_is_read_once_or_is_the_same_each_time_is_decided(tables: SparkSession) -> None:
    aqepilot.use(tables, join_selection=POLICIES["join_selection"])
    same = BODIES["join"].replace("rand()", "f.n + 0.5")
    tables.sql(f"WITH v AS ({same}) {READERS['anti join']}").collect()
    tables.sql(f"WITH v AS ({BODIES['join']}) SELECT count(*) FROM v WHERE r < 2").collect()
    # What rows a scan has is the same whatever is decided above it.
    salted = tables.table("f").withColumn("r", functions.rand())
    assert salted.join(tables.table("d"), "k").join(salted, ["n", "r"], "left_anti").count() == 0
    reasons = policies.reasons(tables)
    assert "NON_DETERMINISTIC_CTE" not in reasons
    assert "APPLIED" in reasons

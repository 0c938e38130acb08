"""A chain is read through projections, and brings into scope nothing that one of them hides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import little
import policies
import shared_relations
import tiers
from plans import Executed
from rows import assert_same_rows
from shared_relations import use

pytestmark = tiers.ON_ONE

POINT = "join_reorder"
REVERSED = "-double(candidate.position)"


@pytest.fixture
def relations(spark: SparkSession) -> SparkSession:
    shared_relations.write(spark)
    little.settings(spark, {"spark.sql.shuffle.partitions": "2"})
    return spark


@tiers.EIGHTH
@pytest.mark.parametrize("form", shared_relations.FORMS)
def test_a_relation_used_twice_gives_its_rows_at_every_order(
    relations: SparkSession, form: str
) -> None:
    use(relations, None)
    plain = shared_relations.rows(relations, form)
    for order in shared_relations.orders(every=tiers.ALL):
        use(relations, order)
        assert shared_relations.rows(relations, form) == plain, order


def test_a_chain_ends_only_where_columns_are_shared(
    relations: SparkSession, executed: Callable[..., Executed]
) -> None:
    """The joins beyond the projection are a chain of their own."""
    use(relations, REVERSED)
    executed(relations.sql(shared_relations.SQL["further relations"]))
    made = [d for d in policies.decisions(relations) if d.point == POINT]
    assert any(d.applied for d in made), made
    if relations.version.startswith("3.5"):
        assert "SHARED_COLUMNS" in policies.reasons(relations)


# What may stand between the joins of a chain, and is no relation that a person would name.
BETWEEN = {
    "a generator": """(SELECT key1, explode(sequence(0, key1)) AS e FROM sd1) a
        JOIN sd2 ON key1 = key2 JOIN sd3 ON key2 = key3 AND e < v""",
    "a generator over joins": """(SELECT key1, explode(sequence(0, key2)) AS e FROM sd1
        JOIN sd2 ON key1 = key2) a JOIN sd3 ON key1 = key3 JOIN sd2 b ON b.key2 = e""",
    "a Python function": """(SELECT py(key1) AS key1, key1 AS e FROM sd1 JOIN sd2 ON key1 = key2) a
        JOIN sd3 ON key1 = key3 JOIN sd2 b ON b.key2 = e""",
    "a correlated subquery": """(SELECT key1, v AS e FROM sd1 JOIN sd3 ON key1 = key3
        WHERE v > (SELECT avg(v) FROM sd3 o WHERE o.key3 = sd1.key1)) a
        JOIN sd2 ON key1 = key2 JOIN (SELECT DISTINCT key3 FROM sd3) c ON key2 = c.key3""",
    "a view of the catalog": """joined_keys a JOIN sd2 ON key1 = key2 JOIN sd3 ON key2 = key3
        JOIN joined_keys b ON b.key1 = key3""",
}


@tiers.EIGHTH
@pytest.mark.parametrize("what", BETWEEN)
def test_what_stands_between_joins_sees_the_rows_that_it_saw(
    relations: SparkSession, what: str
) -> None:
    relations.udf.register("py", lambda key: key and key % 4, "bigint")
    if what == "a view of the catalog":
        relations.sql(
            "CREATE OR REPLACE VIEW joined_keys AS SELECT r.id AS key1, s.id AS e"
            " FROM range(60) r JOIN range(5) s ON r.id % 5 = s.id"
        )
    sql = f"SELECT count(*), sum(a.e), sum(a.key1) FROM {BETWEEN[what]}"
    use(relations, None)
    plain = relations.sql(sql).collect()
    assert plain[0][0]
    for order in shared_relations.orders(every=tiers.ALL):
        use(relations, order)
        assert relations.sql(sql).collect() == plain, order
    assert "APPLIED" in policies.reasons(relations)


def test_statistics_order_nothing_beside_what_a_policy_ordered(spark: SparkSession) -> None:
    """Spark's search fails where it cannot connect a chain's relations, as 3.5's of a part here."""
    spark.udf.register("same", lambda k: k, "bigint")
    for name, rows in (("p", 5), ("r", 3), ("keys", 17)):
        spark.range(rows).selectExpr("id AS k").createOrReplaceTempView(name)
    spark.table("keys").join(spark.table("r"), "k").createOrReplaceTempView("joined")
    sql = """SELECT p.k FROM p JOIN joined q ON p.k = q.k JOIN r ON p.k = r.k
             JOIN joined s ON same(r.k) = s.k"""
    little.settings(
        spark,
        {
            "spark.sql.cbo.enabled": "true",
            "spark.sql.cbo.joinReorder.enabled": "true",
            "spark.sql.cbo.planStats.enabled": "true",
        },
    )
    use(spark, None)
    expected = spark.sql(sql).collect()
    assert len(expected) == 3
    for order in shared_relations.orders(every=tiers.ALL):
        use(spark, order)
        assert_same_rows(spark.sql(sql).collect(), expected)


@pytest.fixture
def failing(spark: SparkSession) -> SparkSession:
    """c has rows that make the conditions throw, which no row of b matches."""
    spark.sql("SELECT id AS k, id + 1 AS x FROM range(20)").createOrReplaceTempView("a")
    spark.sql("SELECT id AS k, id AS j FROM range(10)").createOrReplaceTempView("b")
    spark.sql(
        "SELECT id AS j, if(id < 10, 1, 0) AS y, if(id < 10, string(id), 'zzz') AS t, id AS n"
        " FROM range(30)"
    ).createOrReplaceTempView("c")
    spark.sql("SELECT id AS n, id AS m FROM range(40)").createOrReplaceTempView("d")
    little.settings(spark, {"spark.sql.ansi.enabled": "true", "spark.sql.shuffle.partitions": "2"})
    return spark


CHAINS = "FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j JOIN d ON c.n = d.n WHERE"
THROWING = [
    "a.x / c.y < 10",
    "CAST(c.t AS INT) <= a.x",
    "a.x + int(c.t) > 0 AND c.n >= 0",
    "a.x % c.y = 0",
    "element_at(array(1, 2), CAST(c.y + (a.x - a.x) AS INT)) > 0",
]


@tiers.EIGHTH
@pytest.mark.parametrize("condition", THROWING)
def test_a_condition_that_can_throw_stays_where_spark_has_it(
    failing: SparkSession, condition: str, plain: Callable[..., Any]
) -> None:
    sql = f"SELECT count(*), sum(a.x) {CHAINS} {condition}"
    with plain(failing):
        expected: Any = _rows_or_error(failing, sql)
    for order in shared_relations.orders(every=tiers.ALL):
        use(failing, order)
        assert _rows_or_error(failing, sql) == expected, order
    assert "CONDITION_CAN_THROW" in policies.reasons(failing)


def _rows_or_error(spark: SparkSession, sql: str) -> Any:
    try:
        return spark.sql(sql).collect()
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]


def test_harmless_conditions_go_with_any_order_under_ansi(
    failing: SparkSession, executed: Callable[..., Executed], plain: Callable[..., Any]
) -> None:
    sql = f"""SELECT a.x, d.m {CHAINS}
        coalesce(a.x, 0) < d.m + 5D AND CAST(c.n AS DECIMAL(20, 0)) <> a.x + 0.5D
        AND if(b.j IS NULL, a.k, b.j) = d.n AND (upper(c.t) <> 'ZZZ' OR a.k > 3)"""
    with plain(failing):
        without = executed(failing.sql(sql))
    use(failing, REVERSED)
    ran = executed(failing.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    made = [d for d in policies.decisions(failing) if d.point == POINT]
    assert [(d.applied, d.fate) for d in made] == [(True, "adopted")], made


def test_an_order_passes_where_cross_joins_are_forbidden(failing: SparkSession) -> None:
    """A join that no condition connects is a cross join, whatever its relations answer alone."""
    sql = "SELECT count(*) FROM a CROSS JOIN b JOIN d ON a.k = d.n AND b.j = d.n"
    expected = failing.sql(sql).collect()
    failing.conf.set("spark.sql.crossJoin.enabled", "false")
    for order in shared_relations.orders(every=tiers.ALL):
        use(failing, order)
        assert failing.sql(sql).collect() == expected


@tiers.EIGHTH
@pytest.mark.parametrize(
    "from_",
    ["a JOIN b ON a.k = b.k JOIN d ON a.k = d.n JOIN c", "a JOIN b ON a.k = b.k JOIN d ON d.m = 1"],
)
def test_a_join_without_a_condition_is_refused_as_by_plain_spark(
    failing: SparkSession, from_: str, plain: Callable[..., Any]
) -> None:
    """An order must not make the cross join of it that the author has not written."""
    failing.conf.set("spark.sql.crossJoin.enabled", "false")
    sql = f"SELECT count(*) FROM {from_}"
    with plain(failing):
        expected: Any = _rows_or_error(failing, sql)
    assert "implicit cartesian product" in expected[1]
    for order in shared_relations.orders(every=tiers.ALL):
        use(failing, order)
        assert _rows_or_error(failing, sql) == expected, order
    assert policies.reasons(failing) == {"CROSS_PRODUCT"}


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("on", "reason"),
    [
        ("a.k = c.j AND a.x / c.y >= 1", "CONDITION_CAN_THROW"),
        ("a.x / c.y >= 1 AND a.k * 2 = c.j + 1", "CONDITION_CAN_THROW"),
        ("a.k = c.j AND a.x > c.y", "APPLIED"),
    ],
)
def test_a_cartesian_product_evaluates_nothing_that_can_throw_for_more_rows(
    failing: SparkSession, on: str, reason: str, plain: Callable[..., Any]
) -> None:
    sql = f"SELECT count(*), sum(a.x) FROM (SELECT * FROM a WHERE k < 5) a JOIN c ON {on}"
    with plain(failing):
        expected = failing.sql(sql).collect()
    failing.conf.set("spark.aqepilot.policies", "test")
    failing.conf.set("spark.aqepilot.policy.test.join_selection", "'SHUFFLE_REPLICATE_NL'")
    assert failing.sql(sql).collect() == expected
    made = [d for d in policies.decisions(failing) if d.point == "join_selection"]
    assert made[0].reason == reason, made

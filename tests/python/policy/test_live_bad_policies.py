"""Whatever a policy's text is: no query fails, plan and rows are Spark's, and it is said why."""

from __future__ import annotations

import json
import random
import string
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

import each_point
import little
import places
import policies
import tiers
from conftest import Submit
from plans import Executed

pytestmark = tiers.ON_ONE

Run = Callable[[DataFrame], Executed]
SQL = f"SELECT count(*), sum(hash(k, v, w)) FROM ({little.BIG_DENSE} WHERE b.k < 1000)"
SETTINGS = little.SORT_MERGE | {"spark.sql.shuffle.partitions": "4"}


class Refused(NamedTuple):
    """A text that does not compile, and words of the sentence that says so."""

    text: str
    says: str


REFUSED = {
    "empty": Refused(" ", "is empty"),
    "syntax": Refused("CASE WHEN side.is_left THEN", "line 1"),
    "statement": Refused("DROP TABLE big", "line 1, column 12"),
    "second_line": Refused("CASE WHEN side.is_left\n THEN side.max_byte END", "line 2, column 7"),
    "unknown_fact": Refused("CASE WHEN side.max_byte > 1 THEN 'X' END", "side.max_bytes"),
    "unknown_struct": Refused("nothing.here", "nothing.here"),
    "unknown_function": Refused("nonsense(side.max_bytes)", "nonsense"),
    "a_column_of_the_query": Refused("CASE WHEN k > 1 THEN 'SHUFFLE_HASH' END", "'k'"),
    "subquery": Refused("(SELECT 'SHUFFLE_HASH')", "ubquer"),
    "exists": Refused("CASE WHEN EXISTS (SELECT 1 FROM big) THEN 'X' END", "ubquer"),
    "in_subquery": Refused("side.max_bytes IN (SELECT k FROM big)", "ubquer"),
    "aggregate": Refused("max('SHUFFLE_HASH')", "aggregate"),
    "window": Refused("max('SHUFFLE_HASH') OVER ()", "indow"),
    "generator": Refused("explode(array('SHUFFLE_HASH'))", "makes rows"),
    "random": Refused("CASE WHEN rand() > 0 THEN 'SHUFFLE_HASH' END", "rand"),
    "clock": Refused("CASE WHEN now() IS NOT NULL THEN 'SHUFFLE_HASH' END", "now"),
    "reflection": Refused("java_method('java.lang.System', 'exit', 1)", "java_method"),
    "memory": Refused("repeat('x', 2000000000)", "memory"),
    "array": Refused("array('SHUFFLE_HASH')", "must be a string"),
    "number": Refused("42", "must be a string"),
    "a_fact_that_is_a_number": Refused("side.max_bytes", "must be a string"),
    "boolean": Refused("side.is_left", "must be a string"),
    "constant_fails": Refused("CAST('x' AS INT) || ''", "fails"),
    "star": Refused("*", "*"),
    "deep": Refused("(" * 20_000 + "1" + ")" * 20_000, "nested"),
    "two_million_characters": Refused("'" + "x" * 2_000_000 + "'", "longer"),
    "udf": Refused("plus_one(side.max_bytes)", "plus_one"),
}


def garbage(seed: int) -> str:
    """Printable, or any Unicode, or pieces of real texts put together anyhow."""
    dice = random.Random(seed)
    size = dice.randrange(1, 200)
    if seed % 3 == 0:
        return "".join(dice.choice(string.printable) for _ in range(size))
    if seed % 3 == 1:
        return "".join(chr(dice.choice((dice.randrange(1, 0xD800), 0x1F600))) for _ in range(size))
    parts = "CASE WHEN THEN ELSE END side. max_bytes ( ) , 'SHUFFLE_HASH' -> < > = NULL [ ] -- /* `"
    return " ".join(dice.choice(parts.split()) for _ in range(size // 4 + 2))


@pytest.fixture(scope="module")
def plain_runs() -> dict[str, Executed]:
    return {}


@pytest.fixture
def prepared(
    little_tables: SparkSession, executed: Run, plain: Any, plain_runs: dict[str, Executed]
) -> tuple[SparkSession, Executed]:
    """The session, and plain Spark's run of the query."""
    spark = little_tables
    little.settings(spark, SETTINGS)
    if not plain_runs:
        with plain(spark):
            plain_runs[SQL] = executed(spark.sql(SQL))
    return spark, plain_runs[SQL]


@tiers.EIGHTH
@pytest.mark.parametrize("case", REFUSED)
def test_a_text_that_does_not_compile_is_off_and_named(
    prepared: tuple[SparkSession, Executed], executed: Run, case: str
) -> None:
    spark, before = prepared
    spark.udf.register("plus_one", lambda x: x + 1, "long")
    policies.use(spark, REFUSED[case].text)
    after = executed(spark.sql(SQL))
    assert (after.rows, after.plan) == (before.rows, before.plan)
    assert policies.decisions(spark) == []
    (problem,) = policies.status(spark, "problem")
    assert problem.name == "POLICY_TEXT_INVALID"
    assert REFUSED[case].says in problem.detail
    assert f"spark.aqepilot.policy.test.{policies.POINT}" in problem.detail
    assert len(problem.detail) < 2000
    (policy,) = policies.status(spark, "policy")
    assert policy.value == "error"
    assert json.loads(policy.detail)["error"]


class Failing(NamedTuple):
    """A text that compiles and whose answer cannot be applied."""

    text: str
    reason: str
    answer: str | None
    says: str


# No constants: the optimiser would find those out.
ZERO = "(side.max_bytes - side.max_bytes)"
UNUSABLE = {
    "overflow": Failing(
        f"CASE WHEN {ZERO} + 9223372036854775807 + side.max_bytes > 0 THEN 'SHUFFLE_HASH' END",
        "EVALUATION_FAILED",
        None,
        "overflow",
    ),
    "division": Failing(
        f"CASE WHEN 1 / {ZERO} > 0 THEN 'SHUFFLE_HASH' END", "EVALUATION_FAILED", None, "ero"
    ),
    "cast": Failing(
        "CASE WHEN CAST(join.type AS INT) > 0 THEN 'SHUFFLE_HASH' END",
        "EVALUATION_FAILED",
        None,
        "INNER",
    ),
    "index": Failing(
        "CASE WHEN side.bytes_by_partition_id[99] > 0 THEN 'SHUFFLE_HASH' END",
        "EVALUATION_FAILED",
        None,
        "99",
    ),
    "misspelt": Failing("'SHUFFLE_HSAH'", "UNKNOWN_WORD", "SHUFFLE_HSAH", "SHUFFLE_HASH"),
    "cartesian": Failing("'SHUFFLE_REPLICATE_NL'", "UNKNOWN_WORD", "SHUFFLE_REPLICATE_NL", ""),
    "lower_case": Failing("'shuffle_hash'", "UNKNOWN_WORD", "shuffle_hash", "SHUFFLE_HASH"),
    "number": Failing("CAST(side.num_partitions AS STRING)", "UNKNOWN_WORD", "4", ""),
    "nothing": Failing("''", "UNKNOWN_WORD", "", ""),
}


@tiers.EIGHTH
@pytest.mark.parametrize("case", UNUSABLE)
def test_an_answer_that_cannot_be_applied_leaves_it_to_spark(
    prepared: tuple[SparkSession, Executed], executed: Run, case: str
) -> None:
    spark, before = prepared
    bad = UNUSABLE[case]
    policies.use(spark, bad.text)
    after = executed(spark.sql(SQL))
    assert (after.rows, after.plan) == (before.rows, before.plan)
    made = policies.decisions(spark)
    assert {d.side for d in made} == {"left", "right"}
    for d in made:
        assert (d.reason, d.answer, d.applied, d.fate) == (bad.reason, bad.answer, False, None)
        assert bad.says in d.detail
    assert [p.name for p in policies.status(spark, "problem")] == []


def test_the_next_policy_is_asked_after_one_that_is_bad_or_fails(
    prepared: tuple[SparkSession, Executed], executed: Run
) -> None:
    spark, before = prepared
    policies.use(spark, REFUSED["syntax"].text, "bad")
    policies.use(spark, UNUSABLE["cast"].text, "fails")
    policies.use(spark, policies.HASH_RIGHT, "good")
    spark.conf.set("spark.aqepilot.policies", "bad,missing,fails,good")
    after = executed(spark.sql(SQL))
    assert after.rows == before.rows
    assert after.strategies == ["ShuffledHashJoin BuildRight"]
    right = {d.policy: d for d in policies.decisions(spark) if d.side == "right"}
    assert {name: d.reason for name, d in right.items()} == {
        "fails": "EVALUATION_FAILED",
        "good": "APPLIED",
    }
    problems = {p.name: p.detail for p in policies.status(spark, "problem")}
    assert set(problems) == {"POLICY_TEXT_INVALID", "POLICY_NOT_DEFINED"}
    assert "'missing'" in problems["POLICY_NOT_DEFINED"]


LONG = {
    "comment": "-- " + "x" * 100_000 + "\n" + policies.HASH_RIGHT,
    "cases": "CASE "
    + " ".join(f"WHEN side.size_in_bytes = -{i} THEN 'BROADCAST'" for i in range(1, 2_300))
    + " WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END",
    "list": f"CASE WHEN side.size_in_bytes NOT IN ({', '.join(map(str, range(-15_000, 0)))}) "
    "AND NOT side.is_left THEN 'SHUFFLE_HASH' END",
}


@tiers.EIGHTH
@pytest.mark.parametrize("kind", LONG)
def test_a_text_of_100_kb_is_decided_with(
    prepared: tuple[SparkSession, Executed], executed: Run, kind: str
) -> None:
    spark, before = prepared
    assert 100_000 < len(LONG[kind]) < 130_000
    policies.use(spark, LONG[kind])
    after = executed(spark.sql(SQL))
    assert after.rows == before.rows
    assert after.strategies == ["ShuffledHashJoin BuildRight"]
    assert "APPLIED" in policies.reasons(spark)
    assert policies.status(spark, "problem") == []


@tiers.EIGHTH
@pytest.mark.parametrize("seed", range(21))
def test_random_text_never_fails_a_query(
    prepared: tuple[SparkSession, Executed], executed: Run, seed: int
) -> None:
    spark, before = prepared
    policies.use(spark, garbage(seed))
    spark.conf.set("spark.aqepilot.policy.test.when", garbage(seed + 1))
    after = executed(spark.sql(SQL))
    assert (after.rows, after.plan) == (before.rows, before.plan)
    assert {p.name for p in policies.status(spark, "problem")} == {"POLICY_TEXT_INVALID"}


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("query.ap_name = 'x'", "refused"),
        ("side.is_left", "refused"),
        ("query.app_name", "refused"),
        ("CAST(query.app_name AS BOOLEAN)", "fails"),
    ],
)
def test_a_bad_when_leaves_it_to_spark(
    prepared: tuple[SparkSession, Executed], executed: Run, when: str, kind: str
) -> None:
    spark, before = prepared
    policies.use(spark, policies.HASH_RIGHT, when=when)
    after = executed(spark.sql(SQL))
    assert (after.rows, after.plan) == (before.rows, before.plan)
    problems = policies.status(spark, "problem")
    if kind == "refused":
        assert policies.decisions(spark) == []
        assert "spark.aqepilot.policy.test.when" in problems[0].detail
    else:
        assert policies.reasons(spark) == {"EVALUATION_FAILED"}
        assert problems == []


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("spark.aqepilot.policy.test.mode", "enforced", "MODE_INVALID"),
        ("spark.aqepilot.policies", "no_such_policy", "POLICY_NOT_DEFINED"),
        ("spark.aqepilot.policy.test.skew_joins", "'x'", "POLICY_POINT_UNKNOWN"),
        ("spark.aqepilot.mod", "off", "SETTING_UNKNOWN"),
        ("spark.aqepilot.policy.Test.mode", "off", "POLICY_NAME_INVALID"),
        ("spark.aqepilot.policy.other.mode", "off", "POLICY_NOT_LISTED"),
    ],
)
def test_a_wrong_setting_is_a_problem_and_no_failure(
    prepared: tuple[SparkSession, Executed], executed: Run, key: str, value: str, code: str
) -> None:
    spark, before = prepared
    policies.use(spark, "NULL")
    spark.conf.set(key, value)
    after = executed(spark.sql(SQL))
    assert (after.rows, after.plan) == (before.rows, before.plan)
    assert code in {p.name for p in policies.status(spark, "problem")}


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.aqepilot.mode", "enforced"),
        ("spark.aqepilot.policies", "Sales"),
        ("spark.aqepilot.guard.growth", "0.5"),
        ("spark.aqepilot.guard.max_broadcast_bytes", "much"),
    ],
)
def test_set_refuses_a_bad_value(spark: SparkSession, key: str, value: str) -> None:
    with pytest.raises(Exception, match=key.replace(".", r"\.")):
        spark.conf.set(key, value)
    assert spark.conf.get(key, None) is None


JOB = """
import sys
sys.path.insert(0, sys.argv[1])
import plans, policies
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(20000).selectExpr("id % 1000 AS k").createOrReplaceTempView("a")
spark.range(1000).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("b")
sql = "SELECT count(*) AS n, sum(b.w) AS w FROM a JOIN b ON a.k = b.k"
for mode in ("off", "enforce"):
    spark.conf.set("spark.aqepilot.mode", mode)
    ran = plans.execute(spark.sql(sql))
    print(mode, "rows:", ran.rows, "joins:", ran.strategies)
print("reasons", sorted(policies.reasons(spark)))
"""


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("missing", "reasons"),
    [
        # Found when the rule is made: nobody is asked.
        (
            "org/apache/spark/sql/aqepilot/points/dynamic_join_selection/JoinReplanning.class",
            [],
        ),
        ("org/apache/spark/sql/aqepilot/policy/sql/PolicyCompiler$.class", ["INTERNAL_ERROR"]),
    ],
)
def test_a_class_that_cannot_be_linked_fails_no_query(
    spark_submit: Submit,
    spark_jar: Path,
    tmp_path: Path,
    missing: str,
    reasons: list[str],
) -> None:
    """As on a vendor's Spark that lacks what we need."""
    jar = tmp_path / spark_jar.name
    with zipfile.ZipFile(spark_jar) as whole, zipfile.ZipFile(jar, "w") as broken:
        assert missing in whole.namelist()
        for name in whole.namelist():
            if name != missing:
                broken.writestr(name, whole.read(name))
    run = spark_submit(
        JOB,
        ["--jars", str(jar), "--conf", "spark.sql.extensions=io.aqepilot.AqePilotExtension"],
        conf=little.SORT_MERGE | policies.conf(policies.HASH_RIGHT),
        job_words=[str(places.SUPPORT)],
        extension=False,
    )
    assert run.returncode == 0, run.stderr
    rows = "rows: [Row(n=20000, w=19980000)] joins:"
    assert f"off {rows} ['SortMergeJoin']" in run.stdout
    assert f"enforce {rows} ['SortMergeJoin']" in run.stdout
    assert f"reasons {reasons}" in run.stdout
    assert "dynamic_join_selection failed and was left to Spark (INTERNAL_ERROR)" in run.stderr


ALL_POINTS = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import each_point, policies, skewed
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
skewed.write(spark, Path("skewed"))
skewed.register(spark, Path("skewed"))
rows = {}
for mode in ("off", "enforce"):
    spark.conf.set("spark.aqepilot.mode", mode)
    for sql in dict.fromkeys(each_point.QUERIES.values()):
        ran = each_point.run(spark, sql)
        same = sorted(ran.rows) == rows.setdefault(sql, sorted(ran.rows))
        for point, effect in ran.effects.items():
            print(mode, point, same, effect == each_point.EFFECTS[None][point])
print(*sorted(p.name for p in policies.status(spark, "point") if p.value == "off"))
"""
NEEDED = {
    "skew_join": "points/skew_join/SkewDecisions",
    "shuffle_partitions": "points/shuffle_partitions/ShuffleDecisions",
    "partition_coalescing": "points/partition_coalescing/CoalescingDecisions",
    "dynamic_join_selection": "points/dynamic_join_selection/JoinReplanning",
    "cost_evaluation": "points/cost_evaluation/Replan",
    "join_selection": "points/join_selection/JoinPlanning",
    "join_reorder": "points/join_reorder/ChainReader",
    "write_distribution": "points/write_distribution/Distribution",
}


def test_a_fault_of_ours_at_every_point_leaves_it_to_spark(
    spark_submit: Submit, spark_jar: Path, tmp_path: Path
) -> None:
    """Each rule throws a LinkageError: plain Spark's plans and rows, one line in the log.

    From then on, if not before, the point is off.
    """
    jar = tmp_path / spark_jar.name
    with zipfile.ZipFile(spark_jar) as whole, zipfile.ZipFile(jar, "w") as broken:
        gone = tuple(f"org/apache/spark/sql/aqepilot/{name}" for name in NEEDED.values())
        kept = [n for n in whole.namelist() if n.removesuffix(".class").rstrip("$") not in gone]
        assert len(kept) <= len(whole.namelist()) - len(gone)
        for name in kept:
            broken.writestr(name, whole.read(name))
    texts = each_point.SETS["one"]
    run = spark_submit(
        ALL_POINTS,
        ["--jars", str(jar), "--conf", "spark.sql.extensions=io.aqepilot.AqePilotExtension"],
        conf=each_point.SETTINGS
        | {"spark.aqepilot.policies": "p"}
        | {f"spark.aqepilot.policy.p.{point}": text for point, text in texts.items()},
        job_words=[str(places.SUPPORT)],
        extension=False,
    )
    assert run.returncode == 0, run.stderr
    *lines_before, off = run.stdout.splitlines()
    assert lines_before == [f"{mode} {p} True True" for mode in ("off", "enforce") for p in NEEDED]
    assert off.split() == sorted(NEEDED)
    faults = [line for line in run.stderr.splitlines() if "(INTERNAL_ERROR)" in line]
    says = "aqepilot: {} failed and was left to Spark (INTERNAL_ERROR): NoClassDefFoundError"
    assert len(faults) == len(NEEDED), faults
    for point in NEEDED:
        assert any(says.format(point) in line for line in faults), (point, faults)

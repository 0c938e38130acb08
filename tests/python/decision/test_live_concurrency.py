"""Threads and sessions at once: each query has its session's policy, each caller its record."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

import each_point
import little
import places
import plans
import policies
import scala_objects
import tiers
from conftest import Submit
from plans import Executed
from rows import assert_same_rows

pytestmark = tiers.on("3.5")

SQL = f"SELECT count(*), sum(hash(k, v, w)) FROM ({little.BIG_DENSE} WHERE b.k < 1000)"
SETTINGS = little.SORT_MERGE | {"spark.sql.shuffle.partitions": "4"}
LEFT, RIGHT, MERGE = "ShuffledHashJoin BuildLeft", "ShuffledHashJoin BuildRight", "SortMergeJoin"


def at_once(jobs: list[Callable[[], None]]) -> None:
    """Runs each on a thread of its own, with JVM thread and local properties of its own."""
    failures: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                job()
            except BaseException as e:
                failures.append(e)

        return run

    threads = [InheritableThread(target=guarded(job)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


def test_eight_threads_in_one_session(little_tables: SparkSession) -> None:
    """The policy goes by the job description, which is a thread's own."""
    spark = little_tables
    little.settings(spark, SETTINGS)
    wanted = {"to-left": LEFT, "to-right": RIGHT, "to-spark": MERGE}
    policies.use(
        spark,
        "CASE query.description WHEN 'to-left' THEN if(side.is_left, 'SHUFFLE_HASH', NULL) "
        "WHEN 'to-right' THEN if(side.is_left, NULL, 'SHUFFLE_HASH') END",
        when="query.description LIKE 'to-%'",
    )
    before = plans.execute(spark.sql(SQL))
    assert before.strategies == [MERGE]
    asked_before = policies.decisions(spark)
    assert {d.reason for d in asked_before} == {"NULL_ANSWER"}
    runs: list[tuple[str, Executed]] = []

    def job(description: str) -> Callable[[], None]:
        def run() -> None:
            spark.sparkContext.setJobDescription(description)
            runs.extend((description, plans.execute(spark.sql(SQL))) for _ in range(3))

        return run

    at_once([job(list(wanted)[i % 3]) for i in range(8)])
    assert len(runs) == 24
    for description, ran in runs:
        assert ran.rows == before.rows
        assert ran.strategies == [wanted[description]], description
    made = [d for d in policies.decisions(spark) if d not in asked_before]
    assert len({d.decision_id for d in made}) == len(made)
    for d in made:
        description = json.loads(d.facts)["query"]["description"]
        assert d.execution_id in policies.described(spark, description)
        if d.applied:
            assert d.side == description.removeprefix("to-")
            assert d.fate == "adopted"
    assert len({(d.side, d.execution_id) for d in made if d.applied}) == 18


def test_two_sessions_with_different_policies(
    new_session: Callable[[], SparkSession], register_little: Callable[[SparkSession], None]
) -> None:
    """The same text of the query, and so the same fingerprint, in both, and in one without."""
    texts = {LEFT: policies.HASH_LEFT, RIGHT: policies.HASH_RIGHT, MERGE: None}
    sessions = {}
    for strategy, text in texts.items():
        sessions[strategy] = session = new_session()
        register_little(session)
        little.settings(session, SETTINGS)
        if text:
            policies.use(session, text)
    runs: list[tuple[str, Executed]] = []

    def job(strategy: str) -> Callable[[], None]:
        return lambda: runs.extend(
            (strategy, plans.execute(sessions[strategy].sql(SQL))) for _ in range(3)
        )

    at_once([job(strategy) for strategy in texts for _ in range(2)])
    assert len(runs) == 18
    assert len({tuple(ran.rows) for _, ran in runs}) == 1
    for strategy, ran in runs:
        assert ran.strategies == [strategy]
    made = {strategy: policies.decisions(sessions[strategy]) for strategy in texts}
    assert made[MERGE] == []
    for strategy, side in ((LEFT, "left"), (RIGHT, "right")):
        applied = [d for d in made[strategy] if d.applied]
        assert {d.side for d in applied} == {side}
        assert {d.final_strategy for d in applied} == {strategy}
        assert len({d.execution_id for d in applied}) == 6
    ids = [{d.session_id for d in made[strategy]} for strategy in (LEFT, RIGHT)]
    assert [len(i) for i in ids] == [1, 1]
    assert ids[0] != ids[1]
    assert {d.fingerprint for d in made[LEFT]} == {d.fingerprint for d in made[RIGHT]}


def test_sessions_with_policies_at_all_points(
    new_session: Callable[[], SparkSession], register_skewed: Callable[[SparkSession], None]
) -> None:
    """Two sets and a session without, two threads each, every query each."""
    sessions = {}
    for name in each_point.EFFECTS:
        sessions[name] = session = new_session()
        register_skewed(session)
        little.settings(session, each_point.SETTINGS)
        if name:
            each_point.use(session, each_point.SETS[name])
    runs: list[tuple[str | None, str, each_point.Ran]] = []

    def job(name: str | None) -> Callable[[], None]:
        def run() -> None:
            for sql in dict.fromkeys(each_point.QUERIES.values()):
                runs.append((name, sql, each_point.run(sessions[name], sql)))

        return run

    at_once([job(name) for name in each_point.EFFECTS for _ in range(2)])
    assert len(runs) == 6 * len(set(each_point.QUERIES.values()))
    expected = {sql: ran.rows for name, sql, ran in runs if name is None}
    for name, sql, ran in runs:
        assert_same_rows(ran.rows, expected[sql])
        for point, effect in ran.effects.items():
            assert effect == each_point.EFFECTS[name][point], (name, point)
    made = {name: policies.decisions(session) for name, session in sessions.items()}
    assert made[None] == []
    ids = [{d.session_id for d in made[name]} for name in each_point.SETS]
    assert [len(i) for i in ids] == [1, 1]
    assert ids[0] != ids[1]
    for name, texts in each_point.SETS.items():
        assert {d.point for d in made[name] if d.fate} == set(texts)
        others = {d.revision for other in each_point.SETS if other != name for d in made[other]}
        assert not {d.revision for d in made[name] if d.revision} & others


def test_policies_change_while_queries_run(little_tables: SparkSession) -> None:
    """Each run is one of the two policies' or plain; never a failure or a wrong row."""
    spark = little_tables
    little.settings(spark, SETTINGS)
    before = plans.execute(spark.sql(SQL))
    runs: list[Executed] = []
    done: list[bool] = []

    def change() -> None:
        dice = random.Random(3)
        while len(done) < 4:
            policies.use(spark, dice.choice((policies.HASH_LEFT, policies.HASH_RIGHT, "nonsense(")))
            spark.conf.set("spark.aqepilot.mode", dice.choice(("off", "shadow", "enforce")))

    def job() -> None:
        try:
            runs.extend(plans.execute(spark.sql(SQL)) for _ in range(3))
        finally:
            done.append(True)

    at_once([change, job, job, job, job])
    assert len(runs) == 12
    for ran in runs:
        assert ran.rows == before.rows
        assert ran.strategies in ([LEFT], [RIGHT], [MERGE])


LAMBDA = """
    concat_ws(',', transform(
        filter(side.bytes_by_partition_id, b -> b % 7 = side.num_mappers % 7),
        b -> CAST(b + aggregate(other.bytes_by_partition_id, 0L, (a, c) -> a + c * b) AS STRING)))
"""


def test_ten_thousand_evaluations_with_lambda_functions(spark: SparkSession) -> None:
    """On eight threads, one compiled text; the answers are worked out in Python."""
    dice = random.Random(5)
    cases = []
    for i in range(200):
        mine = [dice.randrange(1000) for _ in range(dice.randrange(30))]
        others = [dice.randrange(1000) for _ in range(dice.randrange(30))]
        answer = [str(b + sum(c * b for c in others)) for b in mine if b % 7 == i % 7]
        facts = {
            "side": {"bytes_by_partition_id": mine, "num_mappers": i},
            "other": {"bytes_by_partition_id": others},
        }
        cases.append((json.dumps(facts), ",".join(answer)))
    rehearsal = scala_objects.get(spark, "org.apache.spark.sql.aqepilot.sql.Rehearsal")

    def ask(seed: int) -> list[str]:
        dice = random.Random(seed)
        wrong = []
        for _ in range(1250):
            facts, answer = dice.choice(cases)
            got = rehearsal.decide(policies.POINT, LAMBDA, facts).apply(0)
            if got.getOrElse(None) != answer:
                wrong.append(f"{got} is not {answer}")
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert [wrong for wrongs in pool.map(ask, range(8)) for wrong in wrongs] == []


JOB = """
import sys
sys.path.insert(0, sys.argv[1])
import policies
from pyspark.sql import SparkSession
one = SparkSession.builder.getOrCreate()
two = one.newSession()
for session, text in ((one, policies.HASH_LEFT), (two, policies.HASH_RIGHT)):
    policies.use(session, text)
    a = session.range(20000).selectExpr("id % 1000 AS k")
    a.join(session.range(1000).selectExpr("id AS k"), "k").groupBy().count().collect()
for session in (one, two):
    seen = policies.decisions(session)
    print("sees", len({d.session_id for d in seen}), sorted({d.side for d in seen if d.applied}))
"""


@pytest.mark.parametrize("everyone", [True, False])
def test_decisions_of_all_sessions_only_if_submitted_so(
    spark_submit: Submit, everyone: bool
) -> None:
    conf = {"spark.aqepilot.decisions.all_sessions": "true"} if everyone else {}
    run = spark_submit(JOB, conf=little.SORT_MERGE | conf, job_words=[str(places.SUPPORT)])
    assert run.returncode == 0, run.stderr
    expected = (
        ["sees 2 ['left', 'right']", "sees 2 ['left', 'right']"]
        if everyone
        else ["sees 1 ['left']", "sees 1 ['right']"]
    )
    assert run.stdout.splitlines()[:2] == expected

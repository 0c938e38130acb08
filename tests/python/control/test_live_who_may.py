"""Each cell of the table of who may do what."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import places
import tiers
import who_may
from aqepilot import catalog
from aqepilot.toml import tomllib
from connect_jobs import run_connect

TABLE = tomllib.loads(places.TESTS.joinpath("who_may.toml").read_text("utf-8"))
cells = pytest.mark.parametrize("what", TABLE)


def refused(policies: Any) -> None:
    raise PermissionError("only text")


@pytest.fixture(scope="module")
def by_sql(_spark_context: SparkSession) -> dict[str, bool]:
    spark = _spark_context.newSession()
    brought = who_may.other(_spark_context.newSession())

    def set_key(key: str, value: str) -> None:
        spark.sql(f"SET {key}={value}").collect()

    return who_may.allowed(spark, set_key, refused, *brought)


@pytest.fixture(scope="module")
def by_python(_spark_context: SparkSession) -> dict[str, bool]:
    spark = _spark_context.newSession()
    brought = who_may.other(_spark_context.newSession())
    return who_may.allowed(spark, spark.conf.set, who_may.use_of(spark), *brought)


CONNECT = """
import json, sys
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.session import SparkSession as Classic
import aqepilot, who_may
from aqepilot import function, gateway
from aqepilot.submit.conf import TOKEN_KEY

builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
if sys.argv[2:]:
    builder = builder.config("spark.jars", sys.argv[2])
spark = aqepilot.configure(builder).getOrCreate()
# Of this driver, and no client of it: another session, which decides.
classic = Classic(SparkContext._active_spark_context)
classic.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
own = gateway.session(classic)
classic.conf.set(TOKEN_KEY, own.token)
text = own.register(*function.pickled(who_may.POINT, lambda facts: "SHUFFLE_HASH"))
assert who_may.is_live(classic, text, classic.conf.set)
classic.sql(who_may.QUERY).collect()
assert "pickled" in str(who_may.status(classic, "python"))
ids = classic.sql("SELECT DISTINCT session_id FROM aqepilot_decisions()").collect()
theirs = (text, ids[0][0])
may = who_may.allowed(spark, spark.conf.set, who_may.use_of(spark), *theirs)
print("TOLD" + json.dumps(may))
spark.stop()
"""


@pytest.fixture(scope="module")
def by_connect(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    allowed: dict[str, bool] = run_connect(tmp_path_factory.mktemp("connect"), "live", job=CONNECT)
    return allowed


@cells
def test_a_session_that_sets_in_sql(by_sql: dict[str, bool], what: str) -> None:
    assert by_sql[what] == TABLE[what]["sql"]


@cells
def test_the_drivers_own_python(by_python: dict[str, bool], what: str) -> None:
    assert by_python[what] == TABLE[what]["python"]


@tiers.on("4.3")
@cells
def test_a_client_of_spark_connect(by_connect: dict[str, bool], what: str) -> None:
    assert by_connect[what] == TABLE[what]["connect"]


def test_the_table_has_each_setting_that_only_the_submitted_configuration_gives() -> None:
    tried = [key for own in who_may.SUBMITTED.values() for key in own]
    listed = [setting.key for setting in catalog.settings() if setting.where == "submitted"]
    assert sorted(tried) == sorted(listed)
    assert who_may.SUBMITTED.keys() <= TABLE.keys()


SUBMITTED = """
import json
from pyspark.sql import SparkSession
import who_may
from aqepilot import catalog

spark = SparkSession.builder.getOrCreate()
first = spark.newSession()
first.sql(who_may.QUERY).collect()
theirs = {row[0] for row in first.sql("SELECT session_id FROM aqepilot_decisions()").collect()}
policies = {row.name.split(".")[0]: row.value for row in who_may.status(spark, "policy")}
seen = {row[0] for row in spark.sql("SELECT session_id FROM aqepilot_decisions()").collect()}
settings = {row.name: row.value for row in who_may.status(spark, "setting")}
problems = [row.name for row in who_may.status(spark, "problem")]
print(json.dumps({
    "sql_policy": policies["sql"] == "enforce",
    "python_module": policies["module"] == "enforce",
    "python_function": policies["pickled"] == "enforce",
    "others_function": policies["pickled"] == "enforce",
    "switch_off": policies["off"] == "off",
    "tighten_guard": settings["spark.aqepilot.guard.max_cross_products"] == "1",
    "loosen_guard": settings[who_may.GUARD] == "1000000" and "GUARD_LOOSENED" not in problems,
    "others_decisions": theirs <= seen and len(theirs) > 0,
    "others_functions": "getpid" in str(who_may.status(first, "python")),
    **{what: [(key, settings.get(key)) for key in own if settings.get(key) != own[key]] or True
       for what, own in who_may.SUBMITTED.items()},
}))
"""


def test_what_is_submitted(
    spark_submit: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    texts = {"sql": "'SHUFFLE_HASH'", "module": "python:os:getpid", "pickled": who_may.UNKNOWN}
    texts["off"] = "'SHUFFLE_HASH'"
    conf = {who_may.POLICY.format(name): text for name, text in texts.items()}
    conf |= {
        "spark.aqepilot.policies": ",".join(texts),
        "spark.aqepilot.policy.off.mode": "off",
        "spark.aqepilot.guard.max_cross_products": "1",
        who_may.GUARD: "1000000",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    path = ["--py-files", str(Path(who_may.__file__))]
    for own in who_may.SUBMITTED.values():
        conf |= own
    done = spark_submit(SUBMITTED, path, conf=conf)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer == {what: row["submitted"] for what, row in TABLE.items()}

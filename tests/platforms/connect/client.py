"""A client of Spark Connect as an analyst has it: no Java, no Spark, a server with a policy."""

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import aqepilot

assert find_spec("py4j") is None, "this is to be an environment without a whole pyspark"
url, event_logs = sys.argv[1:]
os.environ["PATH"] = ""  # no Java either
RECORD = "SELECT policy FROM aqepilot_decisions() WHERE fate = 'adopted'"


def decided(spark: SparkSession) -> list[aqepilot.Decision]:
    """Runs a join and returns its decisions."""
    before = len(aqepilot.decisions(spark))
    left, right = (spark.range(n).repartition(4, "id") for n in (3000, 1000))
    assert left.join(right, "id").count() == 1000
    made = aqepilot.decisions(spark)[before:]
    assert made, aqepilot.explain(spark)
    return made


def policies(made: list[aqepilot.Decision]) -> set[str]:
    """Returns whose answers they are; a policy need not have one for each side."""
    return {decision.policy for decision in made if decision.policy}


def problems(spark: SparkSession) -> set[str]:
    return {row.name for row in aqepilot.status(spark) if row.kind == "problem"}


def refusal(call: Callable[[], object]) -> Exception:
    """Returns the error that a call raises."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("it was not refused")


# The server's policy decides, and SQL alone shows it.
spark = SparkSession.builder.remote(url).getOrCreate()
made = decided(spark)
assert policies(made) == {"hashed"}, made
assert "adopted" in {decision.fate for decision in made}, made
assert "hashed" in {row.policy for row in spark.sql(RECORD).collect()}
assert "SHUFFLE_HASH" in aqepilot.explain(spark)
assert aqepilot.status(spark)

# A session's settings hold where sessions may set them: these do, ...
spark.conf.set("spark.aqepilot.job", "nightly.sales")
jobs = {decision.facts["query"]["job"] for decision in decided(spark) if decision.facts}
assert jobs == {"nightly.sales"}, jobs
spark.conf.set("spark.aqepilot.mode", "shadow")
assert {d.mode for d in decided(spark) if d.policy} == {"shadow"}
spark.conf.unset("spark.aqepilot.mode")
# ... and this is the submitted configuration's alone: Spark refuses it, ...
error = refusal(lambda: spark.conf.set("spark.aqepilot.log.facts", "none"))
assert "spark.aqepilot.log.facts" in str(error), error
# ... and no session loosens a guard rail.
spark.conf.set("spark.aqepilot.guard.max_partitions", "200000")
assert "GUARD_LOOSENED" in problems(spark), aqepilot.status(spark)
spark.conf.unset("spark.aqepilot.guard.max_partitions")

# A policy of the session's own, and back.
aqepilot.use(spark, {"name": "merged", "dynamic_join_selection": "'SHUFFLE_MERGE'"})
assert policies(decided(spark)) == {"merged"}
aqepilot.use(spark)
assert policies(decided(spark)) == {"hashed"}

# What needs the driver's own Python says so, in one message.
refused = {
    "PYTHON_NOT_ALLOWED": lambda facts: "SHUFFLE_HASH",
    "COLUMN_NOT_SQL": sf.when(sf.col("side.is_left"), "SHUFFLE_HASH"),
}
for code, condition in refused.items():
    error = refusal(
        lambda condition=condition: aqepilot.use(spark, dynamic_join_selection=condition)
    )
    assert [problem.code for problem in getattr(error, "problems", ())] == [code], error

# The server's event logs, read over there.
log = aqepilot.read_log(spark, event_logs)
assert {row.policy for row in log.decisions.select("policy").collect()} >= {"hashed", "merged"}
spark.stop()

# The next session brings a policy from its beginning.
builder = aqepilot.configure(
    SparkSession.builder.remote(url),
    {"name": "mine", "dynamic_join_selection": "'SHUFFLE_MERGE'"},
)
spark = builder.getOrCreate()
assert "mine" in policies(decided(spark))
spark.stop()
print("all of it works")

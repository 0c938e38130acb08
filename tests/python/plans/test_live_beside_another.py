"""aqepilot beside another extension that the platform sets: both live, in either order."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import compiled
import tiers
from aqepilot.cli import main

pytestmark = tiers.on("3.5")

OTHER = """
package platform
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule

class Extension extends SparkSessionExtensionsProvider {
  override def apply(e: SparkSessionExtensions): Unit = {
    e.injectFunction((
      FunctionIdentifier("platform_live"),
      new ExpressionInfo("platform.Extension", "platform_live"),
      (_: Any) => Literal(true)))
    e.injectRuntimeOptimizerRule(_ => Nothing)
  }
}
object Nothing extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan
}
"""
POLICY = """
name = "sales"
dynamic_join_selection = '''
-- build from the right
CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END'''
"""
JOB = """
import json
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
df = spark.sql("SELECT a.id, b.id AS b FROM range(20000) a JOIN range(9000) b ON a.id = b.id")
rows = df.count()
df.collect()
print("FOUND", json.dumps({
    "rows": rows,
    "platform": spark.sql("SELECT platform_live()").head()[0],
    "hash": "ShuffledHashJoin" in df._jdf.queryExecution().executedPlan().toString(),
    "extensions": spark.conf.get("spark.sql.extensions"),
}))
"""


@pytest.fixture(scope="module")
def platform_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another extension."""
    return compiled.jar(tmp_path_factory.mktemp("platform"), OTHER)


# Both orders, and a rule of each kind: test_live_composition.
@pytest.mark.parametrize("ours_first", [False, pytest.param(True, marks=tiers.LONG)])
def test_both_are_live_after_pasting_what_merge_printed(
    platform_jar: Path, spark_submit: Callable[..., Any], tmp_path: Path, ours_first: bool
) -> None:
    (tmp_path / "sales.toml").write_text(POLICY)
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text(
        f"spark.sql.extensions platform.Extension\nspark.jars {platform_jar}\n"
        "spark.sql.autoBroadcastJoinThreshold -1\n"
    )
    words = ["conf", str(tmp_path / "sales.toml"), "--format", "defaults", "--merge", str(defaults)]
    printed = CliRunner().invoke(main, words)
    assert printed.exit_code == 0, printed.output
    merged = printed.stdout
    both = "platform.Extension,io.aqepilot.AqePilotExtension"
    assert both in merged
    if ours_first:
        merged = merged.replace(both, ",".join(reversed(both.split(","))))
    with defaults.open("a") as file:
        file.write(merged)
    done = spark_submit(JOB, extension=False, env={"SPARK_CONF_DIR": str(tmp_path)})
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, [line for line in done.stderr.splitlines() if " INFO " not in line][-40:]
    assert json.loads(lines[0].removeprefix("FOUND ")) == {
        "rows": 9000,
        "platform": True,
        "hash": True,
        "extensions": ",".join(reversed(both.split(","))) if ours_first else both,
    }

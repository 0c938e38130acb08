"""An application's own cost evaluator stays in charge where no policy has a cost."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

import places
import tiers
from conftest import Submit

KEY = "spark.sql.adaptive.customCostEvaluatorClass"
# Dearer with each broadcast join, and no number that Spark knows.
THEIRS = """
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.Cost;
import org.apache.spark.sql.execution.adaptive.CostEvaluator;
public class NoBroadcasts implements CostEvaluator {
  public Cost evaluateCost(SparkPlan plan) {
    return new Joins(plan.toString().split("BroadcastHashJoin").length);
  }
  public static class Joins implements Cost {
    private final int n;
    Joins(int n) { this.n = n; }
    public int compare(Cost that) { return Integer.compare(n, ((Joins) that).n); }
    public boolean equals(Object that) { return compare((Cost) that) == 0; }
    public int hashCode() { return n; }
    public String toString() { return "joins:" + n; }
  }
}
"""
JOB = f"""
import sys
sys.path.insert(0, sys.argv[1])
import little, plans, policies
from pathlib import Path
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
little.write(spark, Path("little"))
little.register(spark, Path("little"))
little.settings(spark, little.SORT_MERGE)
spark.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "1MB")
def strategy(): return plans.execute(spark.sql(little.BIG_DENSE)).strategies[0].split()[0]
def point():
    return [r.value for r in policies.status(spark, "point") if r.name == "cost_evaluation"][0]
print("alone", strategy(), point())
def use(text):
    spark.conf.set("spark.aqepilot.policies", "p")
    spark.conf.set("spark.aqepilot.policy.p.cost_evaluation", text)
use("CASE WHEN plan.is_current THEN 5 ELSE 4 END")
print("decided", strategy())
use("CASE WHEN plan.is_current THEN 5 END")
print("half", strategy())
seen = [d for d in policies.decisions(spark) if d.point == "cost_evaluation"]
print("reasons", *sorted({{d.reason for d in seen}}), *sorted({{d.spark_answer for d in seen}}))
spark.conf.set("{KEY}", "NoBroadcasts")
use("CASE WHEN plan.is_current THEN 5 ELSE 4 END")
print("session", strategy(), point())
"""


@pytest.mark.skipif(not shutil.which("javac"), reason="needs a Java compiler")
@tiers.on("3.5")
def test_it_is_wrapped(spark_submit: Submit, tmp_path: Path) -> None:
    classes = tmp_path / "classes"
    classes.mkdir()
    (tmp_path / "NoBroadcasts.java").write_text(THEIRS)
    spark_jars = Path(pyspark.__file__).parent / "jars" / "*"
    subprocess.run(
        ["javac", "-nowarn", "-cp", str(spark_jars), "-d", str(classes), "NoBroadcasts.java"],
        cwd=tmp_path,
        check=True,
    )
    ran = spark_submit(
        JOB,
        conf={KEY: "NoBroadcasts", "spark.driver.extraClassPath": str(classes)},
        job_words=[str(places.SUPPORT)],
        own_jvm=True,
    )
    assert ran.returncode == 0, ran.stderr
    answers = dict(line.split(" ", 1) for line in ran.stdout.splitlines() if " " in line)
    assert answers["alone"] == "SortMergeJoin live"
    assert answers["decided"] == "BroadcastHashJoin"
    assert answers["half"] == "SortMergeJoin"
    assert answers["reasons"] == "APPLIED NOT_COMPARABLE NULL_ANSWER joins:1 joins:2"
    assert answers["session"] == "SortMergeJoin off"


def test_the_setting_is_not_one_that_is_submitted(spark_jar: Path) -> None:
    from aqepilot import Policy
    from aqepilot.submit import conf

    policy = Policy(name="p", cost_evaluation="spark.cost")
    assert KEY not in conf.settings([policy], str(spark_jar))

"""What Prometheus reads of a driver; the alert rules and the dashboard name nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import places
import submitting
import tiers
from aqepilot import control

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

MONITORING = places.ROOT / "docs/run/monitoring"
PREFIX = "metrics_spark_driver_aqepilot_"
JOB = """
import urllib.request
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for policy in ("good", "fails"):
    spark.conf.set("spark.aqepilot.policies", policy)
    spark.range(1000).join(spark.range(500), "id").count()
spark.sql("SELECT * FROM aqepilot_decisions()").collect()  # all is counted then
url = spark.sparkContext.uiWebUrl + "/metrics/prometheus/"
with urllib.request.urlopen(url, timeout=60) as page:
    print(page.read().decode())
"""


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    folder = tmp_path_factory.mktemp("monitoring")
    control.lower(str(folder / "control.json"), "off", {"policy": "other"}, reason="a test")
    conf = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.metrics.conf": str(MONITORING / "metrics.properties"),
        "spark.metrics.namespace": "spark",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.aqepilot.control": str(folder / "control.json"),
        "spark.aqepilot.policies": "good",
        "spark.aqepilot.policy.good.join_selection": "'BROADCAST'",
        "spark.aqepilot.policy.fails.join_selection": "CAST(CAST(spark.strategy AS INT) AS STRING)",
    }
    done = submitting.submit(folder / "job", JOB, conf=conf, own_jvm=tiers.OWN_JVM)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = re.findall(rf"^{PREFIX}(\w+)(?:{{.*}})? (\S+)$", done.stdout, re.M)
    return {name: float(value) for name, value in lines}


def test_a_driver_tells_its_counts(scraped: dict[str, float]) -> None:
    assert scraped["decisions_join_selection_APPLIED_Count"] == 1
    assert scraped["decisions_join_selection_EVALUATION_FAILED_Count"] >= 1
    assert scraped["asked_us_99thPercentile"] >= scraped["asked_us_50thPercentile"] > 0
    assert scraped["errors_Count"] == 0
    assert (scraped["control_rules_Value"], scraped["control_unreachable_Value"]) == (1, 0)
    assert 0 <= scraped["control_age_ms_Value"] < 600_000


def named(expressions: list[str]) -> set[str]:
    return {
        name for text in expressions for name in re.findall(rf"\b{PREFIX}([\w.*()|\[\]+-]+)", text)
    }


@pytest.mark.parametrize(
    ("file", "expressions"),
    [
        ("alerts.yml", lambda text: [text]),
        (
            "dashboard.json",
            lambda text: [t["expr"] for p in json.loads(text)["panels"] for t in p["targets"]],
        ),
    ],
)
def test_alerts_and_dashboard_name_what_is_there(
    scraped: dict[str, float], file: str, expressions: Callable[[str], list[str]]
) -> None:
    names = named(expressions((MONITORING / file).read_text("utf-8")))
    assert len(names) >= 6
    for name in names:
        pattern = re.compile(name.split("[5m")[0].split("[10m")[0])
        assert any(pattern.fullmatch(line) for line in scraped), name


def test_each_metric_is_in_the_page(scraped: dict[str, Any]) -> None:
    page = (MONITORING / "README.md").read_text("utf-8")
    for name in scraped:
        general = re.sub(r"^decisions_.*_Count$", "decisions_<point>_<reason>_Count", name)
        general = re.sub(r"^errors_.+_Count$", "errors_<where>_Count", general)
        if not general.startswith("asked_us") and not general.endswith("_Number"):
            assert f"`{general}`" in page, name

"""A DAG of one task, as a team writes it: the settings are those that `aqepilot conf` printed."""

import json
import os
from pathlib import Path

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

HERE = Path(os.environ["AIRFLOW_HOME"])

with DAG("daily", schedule=None):
    SparkSubmitOperator(
        task_id="sales",
        application=str(HERE / "job.py"),
        conf=json.loads((HERE / "conf" / "spark.json").read_text("utf-8")),
    )

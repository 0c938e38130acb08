"""A DAG of one task, a client of Spark Connect: it names its job to the server."""

import json
import os
from pathlib import Path

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.sdk import DAG, get_current_context, task
from pyspark.sql import SparkSession

HERE = Path(os.environ["AIRFLOW_HOME"])

with DAG("connected", schedule=None):

    @task
    def sales() -> None:
        context = get_current_context()
        url = SparkConnectHook("spark_connect_default").get_connection_url()
        spark = SparkSession.builder.remote(url).getOrCreate()
        spark.conf.set("spark.aqepilot.job", f"{context['dag'].dag_id}.{context['task'].task_id}")
        spark.conf.set("spark.aqepilot.run", context["run_id"])
        left, right = (spark.range(n).repartition(4, "id") for n in (3000, 1000))
        rows = left.join(right, "id").count()
        decided = spark.sql("SELECT fate, facts FROM aqepilot_decisions()").collect()
        queries = [json.loads(row.facts)["query"] for row in decided if row.facts]
        record = {
            "rows": rows,
            "fates": [row.fate for row in decided],
            "jobs": [{k: q[k] for k in ("job", "job_source", "run_source")} for q in queries],
        }
        (HERE / "connected.json").write_text(json.dumps(record))
        spark.stop()

    sales()

"""What each platform does with a job and a policy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from platforms.environments import (
    ROOT,
    await_port,
    conf,
    emptied,
    free_port,
    installed,
    of_this_machine,
    read_json,
    run,
    spark_home,
    write_defaults,
)

HERE = Path(__file__).parent
DIST = ROOT / "dist"
# Of 4.3 the index has none yet; a client of 4.x talks to each server of 4.x.
CLIENT = "pyspark-client>=4,<5"


def airflow(spark: Path) -> None:
    """Airflow runs its own SparkSubmitOperator: the driver knows DAG, task and run, and decides."""
    folder = emptied("airflow", "home")
    home = folder / "home"
    (home / "conf").mkdir(parents=True)
    (home / "dags").mkdir()
    python = (spark / "bin" / "python").resolve()
    packages = ("apache-airflow>=3", "apache-airflow-providers-apache-spark>=5")
    venv = installed(folder, python, *packages)
    shutil.copy(HERE / "airflow" / "sales.py", home / "dags")
    shutil.copy(HERE / "job.py", home)
    (home / "conf" / "spark.json").write_text(json.dumps(conf(folder, spark)))
    env = {
        **of_this_machine(venv / "bin", spark / "bin"),
        "PYSPARK_PYTHON": str(spark / "bin" / "python"),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "RECORD": str(home / "record.json"),
    }
    run(folder, "airflow", "db", "migrate", env=env)
    run(folder, "airflow", "dags", "test", "daily", env=env)
    record = json.loads((home / "record.json").read_text())
    assert record["rows"] == 1000
    assert "adopted" in record["fates"], record["fates"]
    job = {"job": "daily.sales", "job_source": "AIRFLOW", "run_source": "AIRFLOW"}
    assert record["jobs"], record
    assert all(one == job for one in record["jobs"]), record["jobs"]
    assert ["run", "attempt", "1"] in record["status"]


def connect(spark: Path) -> None:
    """A client with the wheel and `pyspark-client` alone, and a server that was started by hand."""
    folder = emptied("connect", "server")
    server = folder / "server"
    (server / "events").mkdir(parents=True)
    venv = installed(folder, spark / "bin/python", CLIENT, str(next(DIST.glob("aqepilot-*.whl"))))
    port = free_port()
    settings = conf(folder, spark) | {
        "spark.connect.grpc.binding.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(server / "events"),
    }
    home = spark_home(spark)
    of_server = {
        **of_this_machine(spark / "bin"),
        "PYSPARK_PYTHON": str(spark / "bin" / "python"),
        "SPARK_HOME": str(home),
        "SPARK_LOG_DIR": str(server),
        "SPARK_PID_DIR": str(server),
    }
    words = ["--master", "local[2]"]
    words += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    run(server, home / "sbin" / "start-connect-server.sh", *words, env=of_server)
    try:
        await_port(port)
        script = [HERE / "connect" / "client.py", f"sc://127.0.0.1:{port}", server / "events"]
        printed = run(folder, venv / "bin" / "python", *script, env=of_this_machine())
    finally:
        run(server, home / "sbin" / "stop-connect-server.sh", env=of_server)
    assert printed.endswith("all of it works\n"), printed


def dbt(spark: Path) -> None:
    """dbt runs models in a Spark of its own, each with the settings of spark-defaults.conf."""
    folder = emptied("dbt", "project")
    venv = installed(folder, spark / "bin/python", "dbt-core>=1.10,<1.12", "dbt-spark>=1.9,<2")
    project = shutil.copytree(HERE / "dbt", folder / "project")
    write_defaults(project / "conf", conf(folder, spark) | {"spark.master": "local[2]"})
    env = {
        **of_this_machine(venv / "bin"),
        "PYTHONPATH": ":".join(map(str, spark_home(spark).glob("python/lib/*.zip"))),
        "SPARK_HOME": str(spark_home(spark)),
        "SPARK_CONF_DIR": str(project / "conf"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    run(project, "dbt", "run", "--profiles-dir", ".", env=env)
    decisions = read_json(project / "spark-warehouse" / "decisions")
    assert "adopted" in {decision.get("fate") for decision in decisions}, decisions
    queries = [json.loads(row["facts"])["query"] for row in decisions if row.get("facts")]
    jobs = {(query["job"], query["job_source"]) for query in queries}
    assert jobs == {("sales", "SETTING"), ("customers", "SETTING")}, jobs


CHECKS: dict[str, Callable[[Path], str | None]] = {
    "airflow": airflow,
    "connect": connect,
    "dbt": dbt,
}

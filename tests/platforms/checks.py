"""What each platform does with a job and a policy."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import processes
from platforms.environments import (
    SETTINGS,
    await_port,
    conf,
    emptied,
    events,
    installed,
    of_this_machine,
    read_json,
    run,
    spark_home,
    sparks_python,
    wheel,
    write_defaults,
)

HERE = Path(__file__).parent
# Of 4.3 the index has none yet; a client of 4.x talks to each server of 4.x.
CLIENT = "pyspark-client>=4,<5"


def airflow(spark: Path) -> None:
    """Airflow runs its own SparkSubmitOperator, and a task of its SparkConnectHook.

    The operator's driver knows DAG, task and run by itself; the hook's client tells its server.
    """
    folder = emptied("airflow", "home")
    home = folder / "home"
    (home / "conf").mkdir(parents=True)
    (home / "dags").mkdir()
    python = (spark / "bin" / "python").resolve()
    packages = ("apache-airflow>=3", "apache-airflow-providers-apache-spark>=5")
    venv = installed(folder, python, *packages)
    for dag in (HERE / "airflow").glob("*.py"):
        shutil.copy(dag, home / "dags")
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
    with connect_server(folder, spark) as port:
        server = {"conn_type": "spark_connect", "host": "sc://127.0.0.1", "port": port}
        env["AIRFLOW_CONN_SPARK_CONNECT_DEFAULT"] = json.dumps(server)
        run(folder, "airflow", "dags", "test", "connected", env=env)
    for name, dag, source in (
        ("record", "daily", "AIRFLOW"),
        ("connected", "connected", "SETTING"),
    ):
        record = json.loads((home / f"{name}.json").read_text())
        assert record["rows"] == 1000
        assert "adopted" in record["fates"], record["fates"]
        job = {"job": f"{dag}.sales", "job_source": source, "run_source": source}
        assert record["jobs"], record
        assert all(one == job for one in record["jobs"]), record["jobs"]
    assert ["run", "attempt", "1"] in json.loads((home / "record.json").read_text())["status"]


@contextmanager
def connect_server(folder: Path, spark: Path) -> Iterator[int]:
    """A Spark Connect server with the policy; gives its port, and ends it.

    Its files are in the folder's `server`, event logs in `server/events`.
    """
    server = folder / "server"
    shutil.rmtree(server, ignore_errors=True)
    (server / "events").mkdir(parents=True)
    port = processes.free_port()
    settings = conf(folder, spark) | {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(server / "events"),
    }
    home = spark_home(spark)
    env = {
        **of_this_machine(spark / "bin"),
        "PYSPARK_PYTHON": str(spark / "bin" / "python"),
        "SPARK_HOME": str(home),
        "SPARK_LOG_DIR": str(server),
        "SPARK_PID_DIR": str(server),
    }
    run(server, home / "sbin" / "start-connect-server.sh", *processes.words(settings), env=env)
    try:
        await_port(port)
        yield port
    finally:
        run(server, home / "sbin" / "stop-connect-server.sh", env=env)


def connect(spark: Path) -> None:
    """A client with the wheel and `pyspark-client` alone, and a server that was started by hand."""
    folder = emptied("connect", "server")
    venv = installed(folder, spark / "bin/python", CLIENT, wheel())
    with connect_server(folder, spark) as port:
        script = [HERE / "connect" / "client.py", f"sc://127.0.0.1:{port}"]
        words = [venv / "bin" / "python", *script, folder / "server" / "events"]
        printed = run(folder, *words, env=of_this_machine())
    assert printed.endswith("all of it works\n"), printed


def dbt(spark: Path) -> None:
    """dbt runs models in a Spark of its own, each with the settings of spark-defaults.conf."""
    folder = emptied("dbt", "project")
    venv = installed(folder, spark / "bin/python", "dbt-core>=1.10,<1.12", "dbt-spark>=1.9,<2")
    project = shutil.copytree(HERE / "dbt", folder / "project")
    write_defaults(project / "conf", conf(folder, spark) | {"spark.master": "local[2]"})
    env = {
        **of_this_machine(venv / "bin"),
        **sparks_python(spark),
        "SPARK_CONF_DIR": str(project / "conf"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    run(project, "dbt", "run", "--profiles-dir", ".", env=env)
    decisions = read_json(project / "spark-warehouse" / "decisions")
    assert "adopted" in {decision.get("fate") for decision in decisions}, decisions
    queries = [json.loads(row["facts"])["query"] for row in decisions if row.get("facts")]
    jobs = {(query["job"], query["job_source"]) for query in queries}
    assert jobs == {(f"model.shop.{name}", "DBT") for name in ("sales", "customers")}, jobs


def pipelines(spark: Path) -> str | None:
    """`spark-pipelines run` plain and with a policy for one of two flows: equal rows."""
    home = spark_home(spark)
    if not (home / "bin" / "spark-pipelines").exists():
        return "skipped, this Spark has no declarative pipelines"
    folder = emptied("pipelines", "runs")
    (yaml,) = installed(folder, spark / "bin/python", "pyyaml").glob("lib/python*/site-packages")
    of_one_flow = "IF(array_contains(other.tables, 'default.sales'), 'SHUFFLE_HASH', null)"
    policy = {"spark.aqepilot.policy.hashed.dynamic_join_selection": of_one_flow}
    tables = {}
    for name, settings in {"plain": SETTINGS, "policy": conf(folder, spark) | policy}.items():
        project = shutil.copytree(HERE / "pipelines", folder / "runs" / name)
        (project / "events").mkdir()
        spec = project / "spark-pipeline.yml"
        spec.write_text(spec.read_text().replace("STORAGE", (project / "storage").as_uri()))
        logged = {"enabled": "true", "compress": "false", "dir": str(project / "events")}
        logged = {f"spark.eventLog.{key}": value for key, value in logged.items()}
        write_defaults(project / "conf", settings | logged)
        env = {
            **of_this_machine(spark / "bin"),
            "PYSPARK_PYTHON": str(spark / "bin" / "python"),
            "PYTHONPATH": str(yaml),
            "SPARK_CONF_DIR": str(project / "conf"),
            "SPARK_HOME": str(home),
        }
        run(project, home / "bin" / "spark-pipelines", "run", env=env)
        warehouse = project / "spark-warehouse"
        tables[name] = {
            table: sorted(map(str, read_json(warehouse / table)))
            for table in ("sales", "customers")
        }
    assert len(tables["plain"]["sales"]) == 1000
    assert tables["policy"] == tables["plain"]
    decisions = events(project / "events", "AqePilotDecision")
    assert {row["tables"] for row in decisions if not row["applied"]} >= {"Range ⋈ Range"}
    assert {row["tables"] for row in decisions if row["applied"]} == {"default.sales ⋈ Range"}
    fates = [
        f["fate"] for row in events(project / "events", "AqePilotQueryClosed") for f in row["fates"]
    ]
    assert "adopted" in fates, fates
    # Spark has taken a flow's own settings back when its query runs: docs/run/deploy/servers.md.
    queries = [json.loads(d["commonFacts"])["query"] for d in decisions if d["commonFacts"]]
    assert {query["job_source"] for query in queries} == {"UNKNOWN_RUN"}, queries
    return None


# jinja2 makes HTML of what a cell shows.
JUPYTER = ("nbclient", "ipykernel", "jupyter-core", "jinja2")


def jupyter(spark: Path) -> None:
    """A kernel runs a notebook: its function decides, and the last cell shows that."""
    folder = emptied("jupyter", "ran.ipynb")
    venv = installed(folder, spark / "bin/python", wheel(), *JUPYTER)
    env = of_this_machine(venv / "bin") | sparks_python(spark)
    notebook = shutil.copy(HERE / "jupyter" / "sales.ipynb", folder / "ran.ipynb")
    run(folder, "jupyter", "execute", "--inplace", notebook, env=env)
    outputs = [cell["outputs"] for cell in json.loads(notebook.read_text())["cells"]]
    assert "SHUFFLE_HASH" in "".join(outputs[3][-1]["data"]["text/html"]), outputs
    printed = [
        "".join(result["data"]["text/plain"])
        for result in outputs[2] + outputs[3]
        if result["output_type"] == "execute_result"
    ]
    assert printed[0] == "1000", outputs
    assert "SHUFFLE_HASH" in printed[1], outputs


def under_pytest(spark: Path) -> None:
    """A team's own tests of a job with its policy."""
    folder = emptied("under_pytest", "tests")
    venv = installed(folder, spark / "bin/python", wheel(), "pytest")
    conf(folder, spark)
    env = of_this_machine(venv / "bin") | sparks_python(spark) | {"POLICY": "hashed.toml"}
    tests = shutil.copytree(HERE / "under_pytest", folder / "tests")
    # Not the settings of this repository's own tests.
    (tests / "pytest.ini").write_text("[pytest]\n")
    printed = run(folder, "pytest", tests, env=env)
    assert "2 passed" in printed, printed


def spark_sql(spark: Path) -> None:
    """Spark's own command line for SQL, with the words of `aqepilot conf`."""
    folder = emptied("spark_sql", "metastore_db")
    env = of_this_machine(spark / "bin") | {"SPARK_HOME": str(spark_home(spark))}
    words = processes.words(conf(folder, spark) | {"spark.sql.catalogImplementation": "in-memory"})
    statements = (
        "SELECT count(*) AS n FROM range(0, 3000, 1, 4) JOIN range(0, 1000, 1, 4) USING (id)",
        "SELECT policy, answer, fate FROM aqepilot_decisions() WHERE policy IS NOT NULL",
    )
    printed = run(folder, "spark-sql", *words, "-e", ";".join(statements), env=env)
    assert "\n1000\n" in printed, printed
    assert re.search(r"^hashed\t.*SHUFFLE_HASH.*\tadopted$", printed, re.MULTILINE), printed


CHECKS: dict[str, Callable[[Path], str | None]] = {
    check.__name__: check
    for check in (airflow, connect, dbt, jupyter, pipelines, spark_sql, under_pytest)
}

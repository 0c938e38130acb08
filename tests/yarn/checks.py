"""What has to hold of jobs on YARN: each function here is a check."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import processes
import submitting
from yarn.cluster import Cluster, Ran

POLICY = """
name = "sales"
{when}
dynamic_join_selection = "{text}"
"""
HASH = "CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END"
# Answers in a container of YARN only.
MODULE = """
import os

def choose(facts):
    if "CONTAINER_ID" in os.environ and not facts.side.is_left:
        return "SHUFFLE_HASH"
"""
AIRFLOW = {
    "AIRFLOW_CTX_DAG_ID": "daily",
    "AIRFLOW_CTX_TASK_ID": "sales",
    "AIRFLOW_CTX_DAG_RUN_ID": "scheduled__2026-11-23",
}
SORTED = ["SortMergeJoin"]
HASHED = ["ShuffledHashJoin"]
NOT_THERE = "UNRESOLVABLE_TABLE_VALUED_FUNCTION"


def switched_on(
    cluster: Cluster, jar: Path | str | None = None, text: str = HASH, when: str = "", **more: str
) -> list[str]:
    """Returns what `aqepilot conf` prints for a policy file, and further settings."""
    path = cluster.folder / "sales.toml"
    path.write_text(POLICY.format(text=text, when=f'when = "{when}"' if when else ""), "utf-8")
    uri = jar or shared(cluster, submitting.spark_jar())
    done = cluster.aqepilot("conf", str(path), "--jar-uri", str(uri))
    assert done.returncode == 0, done.stderr
    return [*shlex.split(done.stdout), *processes.words(more)]


def shared(cluster: Cluster, jar: Path) -> str:
    """Returns the URI of a copy of a jar where the cluster reaches it."""
    (cluster.folder / "shared").mkdir(exist_ok=True)
    return Path(shutil.copy(jar, cluster.folder / "shared")).as_uri()


@cache
def plain(cluster: Cluster) -> list[int]:
    """Returns the rows of the job on the same YARN without us."""
    answer = cluster.submit("plain").the()
    assert answer["join"] == SORTED
    assert NOT_THERE in answer["status"], answer["status"]
    return list(answer["rows"])


def is_plain(cluster: Cluster, answer: dict[str, Any]) -> None:
    assert (answer["rows"], answer["join"]) == (plain(cluster), SORTED), answer


def is_decided(cluster: Cluster, ran: Ran, answer: dict[str, Any], attempt: int = 1) -> None:
    """The policy decided, as the session, the plan and the event log say; the rows are the same.

    It is asked again where the other side finishes later, as its facts are others then.
    """
    assert (answer["rows"], answer["join"]) == (plain(cluster), HASHED), answer
    applied = [d for d in answer["decisions"] if d["applied"]]
    assert {(d["policy"], d["answer"], d["fate"]) for d in applied} == {
        ("sales", "SHUFFLE_HASH", "adopted")
    }, answer["decisions"]
    assert [row for row in answer["status"] if row["kind"] == "problem"] == []
    assert answer["application"] == ran.application
    logged = [e for e in ran.events[attempt - 1] if e["Event"].endswith("AqePilotDecision")]
    assert {e["answer"] for e in logged if e["applied"]} == {"SHUFFLE_HASH"}
    added = [e for e in ran.events[attempt - 1] if e["Event"] == "SparkListenerExecutorAdded"]
    hosts = {e["Executor Info"]["Attributes"]["CONTAINER_ID"] for e in added}
    assert hosts
    assert answer["container"] not in hosts


def client_mode(cluster: Cluster) -> None:
    """The policy decides in a driver on the machine that submits; executors are YARN's."""
    ran = cluster.submit("client", switched_on(cluster, submitting.spark_jar()), mode="client")
    assert ran.the()["container"] is None
    is_decided(cluster, ran, ran.the())


@cache
def in_cluster_mode(cluster: Cluster) -> Ran:
    return cluster.submit("cluster", switched_on(cluster))


def cluster_mode(cluster: Cluster) -> None:
    """The same in a driver in a container of YARN, with the jar from a URI."""
    ran = in_cluster_mode(cluster)
    assert ran.the()["container"]
    is_decided(cluster, ran, ran.the())


def python_function(cluster: Cluster) -> None:
    """A Python function of --py-files decides in the driver's container."""
    module = cluster.folder / "yarn_policy.py"
    module.write_text(MODULE, "utf-8")
    words = switched_on(
        cluster, text="python:yarn_policy:choose", **{"spark.aqepilot.ask.deadline": "20s"}
    )
    ran = cluster.submit("function", [*words, "--py-files", str(module)])
    is_decided(cluster, ran, ran.the())


def doctor(cluster: Cluster) -> None:
    """`aqepilot doctor` says in client mode that all is well."""
    words = ["--master", "yarn", *switched_on(cluster, submitting.spark_jar())]
    is_well(cluster.aqepilot("doctor", "--json", "--", *words))


def doctor_in_cluster_mode(cluster: Cluster) -> None:
    """So it does in cluster mode, by a file that it reads and deletes."""
    (cluster.folder / "answers").mkdir(exist_ok=True)
    folder = (cluster.folder / "answers").as_uri()
    words = ["--master", "yarn", "--deploy-mode", "cluster", *switched_on(cluster)]
    is_well(cluster.aqepilot("doctor", "--json", "--answer-in", folder, "--", *words))
    assert list((cluster.folder / "answers").iterdir()) == []


def doctor_script(cluster: Cluster) -> None:
    """The script that `aqepilot doctor` writes does it in cluster mode without aqepilot."""
    script = cluster.folder / "doctor_job.py"
    assert cluster.aqepilot("doctor", "--script", str(script)).returncode == 0
    answer = cluster.folder / "doctor.json"
    ran = cluster.submit("script", switched_on(cluster), job=script, words_of_job=[answer.as_uri()])
    assert ran.code == 0, ran.output[-3000:] + ran.containers[-3000:]
    report = json.loads(answer.read_text("utf-8"))
    assert report["is_well"], report
    assert report["findings"]
    assert report["facts"]["status"]


def is_well(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert answer["is_well"]
    assert "error" not in {f["level"] for f in answer["findings"]}, answer


def control(cluster: Cluster) -> None:
    """The control file switches the policy off while the driver runs on the cluster."""
    file = (cluster.folder / "control.json").as_uri()
    made = cluster.aqepilot("control", "on", "--file", file, "--all", "--reason", "new")
    assert made.returncode == 0, made.stderr
    conf = {"spark.aqepilot.control": file, "spark.aqepilot.control.refresh": "1s"}

    def switch_off(folder: Path) -> None:
        until(folder / "1.json")
        words = ("--policy", "sales", "--reason", "a trial on YARN")
        done = cluster.aqepilot("control", "off", "--file", file, *words)
        assert done.returncode == 0, done.stderr

    ran = cluster.submit(
        "control",
        switched_on(cluster, **conf),
        asked={"until": "a trial on YARN"},
        meanwhile=switch_off,
    )
    is_decided(cluster, ran, ran.the())
    is_plain(cluster, ran.the()["later"])


def until(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.5)


def run_identity(cluster: Cluster) -> None:
    """A run has Airflow's names where they are passed on, else YARN's."""
    names = {f"spark.yarn.appMasterEnv.{key}": value for key, value in AIRFLOW.items()}
    words = switched_on(cluster, when="query.job = 'daily.sales'", **names)
    ran = cluster.submit("airflow", words)
    is_decided(cluster, ran, ran.the())
    run = ("daily.sales", "AIRFLOW", "scheduled__2026-11-23", "AIRFLOW")
    assert named(ran) == run
    unnamed = in_cluster_mode(cluster)
    assert named(unnamed) == ("cluster", "UNKNOWN_RUN", unnamed.application, "UNKNOWN_RUN")


def named(ran: Ran) -> tuple[str, ...]:
    """Returns job and run, and where they are from: as a policy reads them, and the event log."""
    query = json.loads(ran.the()["decisions"][0]["facts"])["query"]
    (closed,) = {
        (e["job"], e["jobSource"], e["run"], e["runSource"])
        for e in ran.events[0]
        if e["Event"].endswith("AqePilotQueryClosed")
    }
    assert closed == (query["job"], query["job_source"], query["run"], query["run_source"])
    return closed


def died(cluster: Cluster, name: str, **more: str) -> Ran:
    """Submits a job whose driver dies at its first attempt, after it has decided."""
    words = switched_on(cluster, **{"spark.yarn.maxAppAttempts": "2"}, **more)
    ran = cluster.submit(name, words, asked={"dies": True})
    assert ran.code == 0, ran.output[-3000:]
    assert list(ran.answers) == [1, 2]
    is_decided(cluster, ran, ran.answers[1])
    (row,) = [r for r in ran.answers[2]["status"] if r["kind"] == "run" and r["name"] == "attempt"]
    assert row["value"] == "2"
    return ran


def second_attempt(cluster: Cluster) -> None:
    """A driver that YARN starts again is plain Spark, and its log says so."""
    ran = died(cluster, "again")
    is_plain(cluster, ran.answers[2])
    assert ran.answers[2]["decisions"] == []
    assert "RETRIED_RUN: attempt 2 (spark.app.attempt.id)" in ran.containers


def second_attempt_enforced(cluster: Cluster) -> None:
    """Submitted with on_retry=enforce, its policies decide."""
    ran = died(cluster, "enforced", **{"spark.aqepilot.on_retry": "enforce"})
    is_decided(cluster, ran, ran.answers[2], attempt=2)


def missing_jar_refused(cluster: Cluster) -> None:
    """YARN takes no job whose --jars or spark.jars names a file that is not there."""
    missing = (cluster.folder / "shared" / "missing.jar").as_uri()
    for mode in ("cluster", "client"):
        ran = cluster.submit(f"missing_{mode}", switched_on(cluster, missing), mode=mode)
        refused(ran.output, ran.code, missing)
        assert (ran.answers, ran.containers) == ({}, "")
    own = [*processes.words({"spark.jars": missing})]
    ran = cluster.submit("missing_setting", own)
    refused(ran.output, ran.code, missing)
    words = ["--master", "yarn", *switched_on(cluster, missing)]
    done = cluster.aqepilot("doctor", "--json", "--", *words)
    refused(done.stdout, done.returncode, missing)


def refused(message: str, code: int, missing: str) -> None:
    assert code != 0
    assert re.search("FileNotFoundException: .*missing.jar does not exist", message), message[
        -3000:
    ]


def missing_jar_on_node(cluster: Cluster) -> None:
    """A jar that the node was to have, by local: or the class path, leaves plain Spark."""
    path = cluster.folder / "shared" / "missing.jar"
    by_class_path = {
        "spark.driver.extraClassPath": str(path),
        "spark.sql.extensions": submitting.EXTENSION,
    }
    for name, words in (
        ("missing_local", switched_on(cluster, f"local:{path}")),
        ("missing_on_class_path", processes.words(by_class_path)),
    ):
        ran = cluster.submit(name, words)
        is_plain(cluster, ran.the())
        assert NOT_THERE in ran.the()["status"], ran.the()["status"]
        assert "Cannot use io.aqepilot.AqePilotExtension" in ran.containers


def wrong_jar(cluster: Cluster) -> None:
    """A jar of another Spark leaves plain Spark."""
    ran = cluster.submit("wrong_jar", switched_on(cluster, shared(cluster, cluster.wrong_jar)))
    answer = ran.the()
    is_plain(cluster, answer)
    assert (
        answer["decisions"] == []
        or NOT_THERE in answer["decisions"]
        or ("this jar was built for" in answer["decisions"])
    ), answer["decisions"]


CHECKS: dict[str, Callable[[Cluster], None]] = {
    check.__name__: check
    for check in (
        *(client_mode, cluster_mode, python_function),
        *(doctor, doctor_in_cluster_mode, doctor_script, control, run_identity),
        *(second_attempt, second_attempt_enforced),
        *(missing_jar_refused, missing_jar_on_node, wrong_jar),
    )
}

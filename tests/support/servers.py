"""A long-lived driver: Spark's Thrift server and Spark Connect in one JVM, and clients of each."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

import submitting
from processes import free_port

CONNECT_JAR = Path(sys.prefix, "spark-connect.jar")
HAS_CONNECT = pyspark.__version__ >= "4" or CONNECT_JAR.exists()
CONF = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    # Else each client's first statement sets up Hive's folders.
    "spark.hadoop.hive.exec.scratchdir": "scratch",
}
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
for statement in json.load(sys.stdin):
    try:
        rows = spark.sql(statement).collect()
    except Exception as error:
        rows = [["ERROR", str(error)]]
    for row in rows:
        print(json.dumps([str(value) for value in row]))
"""


class Server(NamedTuple):
    """A server that runs.

    Attributes:
        thrift: The Thrift server's port.
        connect: Spark Connect's.
        pid: The driver's process.
        log: What it prints.
    """

    thrift: int
    connect: int
    pid: int
    log: Path


@contextmanager
def running(
    folder: Path,
    conf: Mapping[str, str],
    timeout_s: float = 180,
    memory: str = "1g",
    quick: bool = True,
    extension: bool = True,
) -> Iterator[Server]:
    """Starts a server and ends it.

    ``memory``, ``quick`` and ``extension`` are as for `submitting.prepared`.

    Raises:
        RuntimeError: It ended, or does not answer in time; with the end of its log.
    """
    thrift, connect = free_port(), free_port()
    own = CONF | {"spark.connect.grpc.binding.port": str(connect)}
    extra = (
        [] if pyspark.__version__ >= "4" else ["--jars", f"{submitting.spark_jar()},{CONNECT_JAR}"]
    )
    command, environment = submitting.prepared(
        folder,
        "",
        ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", *extra],
        conf=own | conf,
        job_words=["--hiveconf", f"hive.server2.thrift.port={thrift}"],
        memory=memory,
        quick=quick,
        extension=extension,
    )
    words = ["spark-internal" if word == str(folder / "job.py") else word for word in command]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        end = time.monotonic() + timeout_s
        for port in (thrift, connect):
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(log.read_text("utf-8", errors="replace")[-4000:])
                time.sleep(0.1)
        yield Server(thrift, connect, process.pid, log)
    finally:
        process.kill()
        process.wait()


@contextmanager
def standalone(folder: Path, timeout_s: float = 120) -> Iterator[str]:
    """Starts Spark's own cluster, a master and a worker of two cores; gives the master's URL."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    package = "org.apache.spark.deploy"
    daemons = (
        [f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port)],
        [f"{package}.worker.Worker", url, "--cores", "2", "--memory", "2g", "--host", "127.0.0.1"],
    )
    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    folder.mkdir()
    environment = submitting.environment(SPARK_WORKER_DIR=str(folder), SPARK_DAEMON_MEMORY="512m")
    end = time.monotonic() + timeout_s
    with ExitStack() as started:
        for words in daemons:
            log = folder / f"{words[0].rpartition('.')[2]}.log"
            process = subprocess.Popen(
                [spark_class, *words, "--webui-port", "0"],
                cwd=folder,
                env=environment,
                stdout=log.open("wb"),
                stderr=subprocess.STDOUT,
            )
            started.callback(process.wait)
            started.callback(process.kill)
            while "registered with master" not in log.read_text() and not (
                log.name == "Master.log" and _answers(port)
            ):
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(log.read_text("utf-8", errors="replace")[-4000:])
                time.sleep(0.1)
        yield url


def _answers(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def by_jdbc(server: Server, statements: Sequence[str], timeout_s: float = 300) -> list[list[str]]:
    """Runs statements by beeline in one session and returns all rows; an error is a row, too."""
    words = [str(Path(pyspark.__file__).parent / "bin" / "beeline")]
    words += ["-u", f"jdbc:hive2://127.0.0.1:{server.thrift}/", "-n", "test", "--silent=true"]
    words += ["--outputformat=tsv2", "--showHeader=false", "--force=true"]
    done = subprocess.run(
        words,
        input="".join(f"{statement};\n" for statement in statements),
        env=submitting.environment(short=True),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    rows = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    errors = [["ERROR", line] for line in done.stderr.splitlines() if line.startswith("Error:")]
    assert rows or errors, done.stdout + done.stderr
    return rows + errors


def by_connect(
    server: Server, statements: Sequence[str], timeout_s: float = 300
) -> list[list[str]]:
    """Runs statements in a client process of Spark Connect and returns all rows, as `by_jdbc`."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, f"sc://127.0.0.1:{server.connect}"],
        input=json.dumps(list(statements)),
        env={k: v for k, v in os.environ.items() if not k.startswith("SPARK_")},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]

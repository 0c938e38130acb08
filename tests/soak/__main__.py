"""``make soak``: queries of many sessions on one Thrift and Spark Connect server, policies on.

After each tenth of the queries the server collects all garbage, and it is looked at what it holds:
live heap, threads, file descriptors, processes. Fails if that grows from the middle to the end.

With ``--by driver`` the sessions are those of one PySpark driver, as a notebook's: some bring a
Python function, and the SparkContext is stopped and started again after each tenth of them.

With ``--by drivers`` many drivers read one control file while others write it: see `drivers`.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import aqepilot
import servers
from soak import drivers

MOST_GROWTH = 1.05
# A pool's thread or a connection that happens to be open when it is looked.
MOST_MORE = 12
HEADS = ("Queries", "Live heap, MB", "Threads", "File descriptors", "Processes")
# A session that brings a function has a Python process of its own, which takes a second to start.
EACH_BRINGS = 50
MODULE = """
def choose(facts):
    return None if facts.side.is_left else "SHUFFLE_HASH"
"""
CONF = {
    "spark.aqepilot.policies": "hash,few,function",
    "spark.aqepilot.policy.hash.join_selection": "CASE WHEN join.is_replan THEN 'BROADCAST' END",
    "spark.aqepilot.policy.few.shuffle_partitions": "3",
    "spark.aqepilot.policy.function.dynamic_join_selection": "python:soak_policy:choose",
    # That this machine is busy is no fault of a policy's.
    "spark.aqepilot.ask.deadline": "2s",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "4",
    # What Spark itself keeps of queries is level sooner.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.thriftServer.ui.retainedSessions": "10",
    "spark.sql.thriftServer.ui.retainedStatements": "10",
    "spark.connect.session.manager.defaultSessionTimeout": "1m",
    "spark.connect.session.manager.closedSessionsTombstonesSize": "10",
    "spark.connect.execute.manager.abandonedTombstonesSize": "10",
    "spark.connect.ui.retainedSessions": "10",
    "spark.connect.ui.retainedStatements": "10",
}
# Each session's own policy, and queries of texts of their own: Spark compiles code for another
# literal, and for another name none.
POLICY = ("few", "shuffle_partitions", "{n} % 5 + 2")
QUERY = (
    "SELECT count(*) AS count{n}, sum(a.id) FROM range(200) a JOIN range(100) b ON a.id = b.id "
    "WHERE a.id <> {n} % 10"
)


class Held(NamedTuple):
    """What the server's process holds after a full collection."""

    queries: int
    descriptors: int
    processes: int
    thread_names: Counter[str]
    bytes_of: Counter[str]

    @property
    def heap_bytes(self) -> int:
        return self.bytes_of.total()

    @property
    def threads(self) -> int:
        return self.thread_names.total()

    def words(self) -> list[str]:
        """Its figures, under `HEADS`."""
        heap = f"{self.heap_bytes / 2**20:.1f}"
        counts = (self.threads, self.descriptors, self.processes)
        return [f"{self.queries:,}", heap, *map(str, counts)]


def held(pid: int, queries: int) -> Held:
    jmap = Path(os.environ.get("JAVA_HOME", ""), "bin", "jmap")
    words = [str(jmap) if jmap.is_file() else "jmap", "-histo:live", str(pid)]
    for _ in range(2):  # what was collected may have held more by its finalizers
        printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^ *\d+: +\d+ +(\d+)  (\S+)", printed, re.M)
    assert rows, printed[-500:]
    bytes_of = Counter[str]()
    for size, name in rows:  # two loaders may have a class of one name
        bytes_of[name] += int(size)
    process = Path("/proc", str(pid))
    children = sum(
        (Path("/proc", p) / "stat").read_text().rpartition(")")[2].split()[1] == str(pid)
        for p in os.listdir("/proc")
        if p.isdigit() and (Path("/proc", p) / "stat").exists()
    )
    names = Counter[str]()
    for thread in (process / "task").iterdir():
        with contextlib.suppress(OSError):
            names[re.sub(r"\d+", "N", (thread / "comm").read_text().strip())] += 1
    descriptors = len(list((process / "fd").iterdir()))
    return Held(queries, descriptors, children, names, bytes_of)


# Fails where a policy was not asked, as dividing by zero does.
DECIDED = (
    "SELECT 1 / count_if(policy = 'few'), 1 / count_if(policy = 'function') "
    "FROM aqepilot_decisions() WHERE applied"
)
Run = Callable[[str], object]


@contextmanager
def connect_session(server: servers.Server) -> Iterator[Run]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{server.connect}").create()
    try:
        yield lambda text: spark.sql(text).collect()
    finally:
        spark.stop()


def jdbc_sessions() -> Callable[[servers.Server], AbstractContextManager[Run]]:
    """Sessions by Hive's driver in a JVM of this process's own."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway(SparkConf(loadDefaults=False))
    gateway.jvm.java.lang.Class.forName("org.apache.hive.jdbc.HiveDriver")
    manager = gateway.jvm.java.sql.DriverManager

    @contextmanager
    def session(server: servers.Server) -> Iterator[Run]:
        connection = manager.getConnection(f"jdbc:hive2://127.0.0.1:{server.thrift}/", "soak", "")
        statement = connection.createStatement()

        def run(text: str) -> None:
            if statement.execute(text):
                rows = statement.getResultSet()
                while rows.next():
                    pass

        try:
            yield run
        finally:
            connection.close()

    return session


class Driver:
    """This process's own Spark.

    Attributes:
        pid: Its JVM.
    """

    def __init__(self, conf: Mapping[str, str], plain: bool) -> None:
        self._conf = conf
        self._plain = plain
        self._numbers = itertools.count()
        self._start()

    def _start(self) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        for key, value in self._conf.items():
            builder = builder.config(key, value)
        self._spark = (builder if self._plain else aqepilot.configure(builder)).getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        self.pid: int = self._spark._jvm.java.lang.ProcessHandle.current().pid()

    def again(self) -> None:
        """Stops the SparkContext, and starts one in the same JVM.

        The JVM holds a session until Python has collected what stands for it. Spark forgets an
        accumulator that is collected, but not once its SparkContext has stopped, and with it the
        cleaner (`AccumulatorContext`, `ContextCleaner`): plain Spark grows by that.
        """
        self._spark.stop()
        self._spark._jvm.org.apache.spark.util.AccumulatorContext.clear()
        gc.collect()
        self._start()

    @contextmanager
    def session(self) -> Iterator[Run]:
        spark = self._spark.newSession()
        if next(self._numbers) % EACH_BRINGS == 1 and not self._plain:
            aqepilot.use(spark, dynamic_join_selection=lambda facts: "SHUFFLE_HASH")
        yield lambda text: spark.sql(text).collect()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak ARGS=", description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, help="default: 500; --by driver one for each query")
    parser.add_argument("--plain", action="store_true", help="without aqepilot, to compare")
    parser.add_argument(
        "--by", choices=["thrift", "connect", "driver", "drivers"], default="connect"
    )
    drivers.add_options(parser)
    options = parser.parse_args()
    console = Console()
    if options.by == "drivers":
        return drivers.main(console, options.drivers, options.seconds, options.planted)
    sessions = options.sessions or (options.queries if options.by == "driver" else 500)
    each = max(1, options.queries // sessions)
    looks = {sessions * tenth // 10 for tenth in range(1, 11)}
    snapshots: list[Held] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Progress(console=console) as progress:
        task = progress.add_task(f"Spark {pyspark.__version__}, {options.by}", total=sessions)
        modules = Path(folder, "modules")
        modules.mkdir()
        (modules / "soak_policy.py").write_text(MODULE, "utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")])
        with serving(options.by, Path(folder, "server"), options.plain) as (pid, session, again):
            numbers = itertools.count()
            for n in range(1, sessions + 1):
                with session() as run:
                    name, point, text = POLICY
                    run(f"SET spark.aqepilot.policy.{name}.{point}={text.format(n=n)}")
                    for _ in range(each):
                        run(QUERY.format(n=next(numbers)))
                    run(DECIDED if n == 1 and not options.plain else "SELECT 1")
                progress.advance(task)
                if n in looks:
                    again()
                    if n in (sessions // 2, sessions):
                        # Spark's cleaner removes what is collected by threads of its pools, and
                        # these end idle threads after a minute.
                        held(pid, n * each)
                        time.sleep(70)
                    snapshots.append(held(pid, n * each))
                    if not console.is_terminal:
                        figures = zip(HEADS, snapshots[-1].words(), strict=True)
                        console.print(", ".join(f"{head} {value}" for head, value in figures))
    return printed(console, options.by, snapshots, time.monotonic() - began)


@contextmanager
def serving(
    by: str, folder: Path, plain: bool
) -> Iterator[tuple[int, Callable[[], AbstractContextManager[Run]], Callable[[], object]]]:
    """Starts what has the sessions; gives its JVM, a new session, and what comes before a look."""
    if by == "driver":
        driver = Driver(CONF, plain)
        yield driver.pid, driver.session, driver.again
        return
    opened = connect_session if by == "connect" else jdbc_sessions()
    # It runs long enough for the JVM to compile what is slow to compile.
    with servers.running(folder, CONF, memory="2g", quick=False, extension=not plain) as server:
        yield server.pid, lambda: opened(server), lambda: None


def printed(console: Console, by: str, snapshots: list[Held], seconds: float) -> int:
    table = Table(title=f"{by}, Spark {pyspark.__version__}, {seconds:.0f} s", title_justify="left")
    for head in HEADS:
        table.add_column(head, justify="right")
    for h in snapshots:
        table.add_row(*h.words())
    console.print(table)
    middle, last = snapshots[len(snapshots) // 2 - 1], snapshots[-1]
    grew = []
    if last.heap_bytes > middle.heap_bytes * MOST_GROWTH:
        grew.append(f"live heap {last.heap_bytes / middle.heap_bytes:.3f} times that of the middle")
    for what in ("threads", "descriptors", "processes"):
        if getattr(last, what) > getattr(middle, what) + MOST_MORE:
            grew.append(f"{what} from {getattr(middle, what)} to {getattr(last, what)}")
    for what, more in (
        ("threads", last.thread_names - middle.thread_names),
        ("bytes", last.bytes_of - middle.bytes_of),
    ):
        if more:
            most = ", ".join(f"{name} {n:,}" for name, n in more.most_common(8))
            console.print(f"More {what}: {most}", markup=False)
    console.print(f"Grew: {'; '.join(grew)}" if grew else "Level.")
    return int(bool(grew))


if __name__ == "__main__":
    sys.exit(main())

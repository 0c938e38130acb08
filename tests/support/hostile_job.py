"""Runs the hostile policies of `tests/hostile.py` beside a session that means well.

Prints a line of JSON for each, and one at the end: what `test_live_hostile_policies` asserts.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

GOOD_SQL = "CASE WHEN NOT side.is_left AND 'SECRET' <> '' THEN 'SHUFFLE_HASH' END"
QUERY = "SELECT l.k, count(*) AS n, sum(v + w) AS s FROM l JOIN r ON l.k = r.k GROUP BY l.k"
MARK = "HOSTILE_TEST_MARK"
# Between two rounds of the session that means well.
PAUSE_S = 0.5


def processes() -> dict[int, str]:
    """Those that descend from whoever started this job, by what they run."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    children = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    children[int(process.name)] = " ".join(words)[:200]
    return children


def of_driver(spark: Any) -> dict[str, Any]:
    """What a policy might change of the driver, or of the thread that asks it."""
    jvm = spark._jvm
    thread = jvm.java.lang.Thread.currentThread()
    hash_of = jvm.java.lang.System.identityHashCode
    conf = jvm.org.apache.spark.sql.internal.SQLConf.get()
    return {
        "locale": jvm.java.util.Locale.getDefault().toString(),
        "time zone": jvm.java.util.TimeZone.getDefault().getID(),
        "folder": jvm.java.lang.System.getProperty("user.dir"),
        "out": hash_of(jvm.java.lang.System.out),
        "err": hash_of(jvm.java.lang.System.err),
        "class loader": hash_of(thread.getContextClassLoader()),
        "interrupted": thread.isInterrupted(),
        "ansi": conf.getConfString("spark.sql.ansi.enabled"),
        "session time zone": conf.getConfString("spark.sql.session.timeZone"),
        "settings": dict(row for row in spark.sql("SET").collect() if "aqepilot" not in row[0]),
    }


def new_session(root: Any) -> Any:
    spark = root.newSession()
    spark.range(2000).selectExpr("id % 50 AS k", "id AS v").createOrReplaceTempView("l")
    spark.range(50).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("r")
    return spark


def rows_of(spark: Any) -> list[Any]:
    return sorted(tuple(row) for row in spark.sql(QUERY).collect())


def decisions(spark: Any, after: int = -1) -> list[Any]:
    query = f"SELECT * FROM aqepilot_decisions() WHERE decision_id > {after}"
    return spark.sql(query).collect()


def status(spark: Any, *kinds: str) -> list[list[str]]:
    query = "SELECT kind, name, value, detail FROM aqepilot_status()"
    return [list(row) for row in spark.sql(query).collect() if row.kind in kinds]


class Good(threading.Thread):
    """A session that goes on with its own policies, in SQL and in Python."""

    def __init__(self, root: Any, expected: list[Any], secret: str) -> None:
        super().__init__(daemon=True)
        import aqepilot

        self.spark, self.expected = new_session(root), expected
        sql = {"name": "good", "dynamic_join_selection": GOOD_SQL.replace("SECRET", secret)}
        aqepilot.use(self.spark, sql, shuffle_partitions=lambda facts: 3)
        self.rounds: list[dict[str, Any]] = []
        self.ends = threading.Event()
        self.wanted = threading.Event()

    def run(self) -> None:
        rows_of(self.spark)
        last = max(d.decision_id for d in decisions(self.spark))
        before = of_driver(self.spark)
        while not self.ends.is_set():
            seen: dict[str, Any] = {"from": time.monotonic()}
            try:
                seen["rows"] = rows_of(self.spark) == self.expected
                made = decisions(self.spark, last)
                last = max([last, *(d.decision_id for d in made)])
                seen["reasons"] = sorted(
                    {f"{d.policy} {d.point} {d.reason}" for d in made if d.policy}
                )
                now = of_driver(self.spark)
                seen["changed"] = [key for key in before if before[key] != now[key]]
                seen["shown"] = str(made) + str(status(self.spark, "policy", "python", "problem"))
            except Exception as error:
                seen["error"] = str(error)[:500]
            seen["until"] = time.monotonic()
            self.rounds.append(seen)
            # Else half of all the work is its own.
            self.wanted.wait(PAUSE_S)
            self.wanted.clear()

    def next_round(self) -> None:
        """Waits until one has ended that began after this call."""
        now = time.monotonic()
        self.wanted.set()
        while not any(r["from"] > now for r in list(self.rounds)):
            if not self.is_alive():
                raise RuntimeError("the session that means well has ended")
            time.sleep(0.05)


def attempt(root: Any, kind: str, name: str, case: Any, expected: list[Any]) -> tuple[Any, Any]:
    """Runs the query under one hostile policy, in a session of its own."""
    import aqepilot
    from aqepilot.errors import AqePilotError

    spark = new_session(root)
    answer: dict[str, Any] = {"kind": kind, "name": name, "refused": []}
    rows_of(spark)
    before = of_driver(spark)
    begun = time.monotonic()
    if kind == "sql":
        spark.conf.set(f"spark.aqepilot.policy.hostile.{case.point}", case.text)
        spark.conf.set("spark.aqepilot.policies", "hostile")
        checked = "SELECT code FROM aqepilot_check(:point, :text)"
        args = {"point": case.point, "text": case.text}
        answer["refused"] = [row.code for row in spark.sql(checked, args=args).collect()]
    else:
        module = "hostile_" + "".join(c if c.isalnum() else "_" for c in name)
        Path("modules", f"{module}.py").write_text(case.text, encoding="utf-8")
        try:
            aqepilot.use(spark, **{case.point: f"python:{module}:choose"})
        except AqePilotError as error:
            answer["refused"] = [problem.code for problem in error.problems]
            answer["shown"] = str(error)
    answer["prepared_s"] = time.monotonic() - begun
    answer["rows"], answer["queries_s"] = [], []
    for _ in range(2):
        begun = time.monotonic()
        try:
            answer["rows"].append(rows_of(spark) == expected)
        except Exception as error:
            answer["error"] = str(error)[:1000]
        answer["queries_s"].append(time.monotonic() - begun)
    made = decisions(spark)
    after = of_driver(spark)
    answer["changed"] = [key for key in before if before[key] != after[key]]
    answer["reasons"] = sorted({d.reason for d in made})
    answer["asked_s"] = max([d.asked_us for d in made], default=0) / 1e6
    texts = str(made) + str(status(spark, "policy", "python", "problem"))
    answer["shown"] = answer.get("shown", "") + texts
    return spark, answer


def main() -> None:
    import hostile
    from pyspark.sql import SparkSession

    import python_policies

    root = SparkSession.builder.getOrCreate()
    Path("modules").mkdir()
    sys.path.append(os.path.abspath("modules"))
    expected = rows_of(new_session(root))
    good = Good(root, expected, hostile.SECRETS["policy"])
    jvm = int(root._jvm.java.lang.ProcessHandle.current().pid())
    good.start()
    good.next_round()
    waits_s, wanted = int(sys.argv[2]), sys.argv[3:]
    at_first: dict[str, Any] = {
        "descriptors": len(os.listdir(f"/proc/{jvm}/fd")),
        "processes": processes(),
        "files": sorted(p.name for p in Path.cwd().iterdir()),
    }
    for kind, cases in (("sql", hostile.SQL), ("python", hostile.PYTHON)):
        for name, case in cases.items():
            if wanted and name not in wanted:
                continue
            spark, answer = attempt(root, kind, name, case, expected)
            del spark
            good.next_round()
            print(json.dumps(answer), flush=True)
    good.next_round()
    good.ends.set()
    good.join()
    # A session ends when Python and the driver have collected it, and Spark's threads that were
    # made for it have ended: idle ones do after a minute.
    functions = python_policies.session_functions(root)
    rows_of(new_session(root))  # a thread may keep what it has planned last
    root._jvm.org.apache.spark.sql.SparkSession.setActiveSession(root._jsparkSession)
    end = time.monotonic() + waits_s
    while time.monotonic() < end and (
        functions.sessions() > 1 or len(processes()) > len(at_first["processes"])
    ):
        gc.collect()
        root._jvm.System.gc()
        # A collection of the whole heap takes a core from other tests.
        time.sleep(3)
    left = {pid: what for pid, what in processes().items() if pid not in at_first["processes"]}
    # Threads' names are cut by the kernel.
    threads = [p.read_text().strip() for p in Path(f"/proc/{jvm}/task").glob("*/comm")]
    print(
        json.dumps(
            {
                "rounds": good.rounds,
                "sessions": functions.sessions(),
                "left": left,
                "compiling": threads.count("aqepilot-compil"),
                "descriptors": [at_first["descriptors"], len(os.listdir(f"/proc/{jvm}/fd"))],
                "files": sorted({p.name for p in Path.cwd().iterdir()} - set(at_first["files"])),
            }
        ),
        flush=True,
    )
    root.stop()
    time.sleep(1)  # for threads that tell how much was printed


if __name__ == "__main__":
    sys.path[:0] = sys.argv[1].split(os.pathsep)
    main()

"""Do pinned queries have their plan on another Spark? `python -m bench.pins STEP FOLDER`.

The steps, in the environment of the Spark that is named, each with the same folder:

    run          in both environments: runs the queries with the recipe watch
    pin          in one of them: makes pins of the runs of both Sparks
    run --pins   in both: runs the queries under the pins that the other Spark's runs were made into
    repeat       in both: runs plain Spark again and again: which queries have several plans anyway?
    compare      in one of them: prints how many plans have the pinned shape, and writes pins.json

The shape of a plan is that of the last plan in the event log (`bench.plans`): joins with their
sides, their order, shuffles with their numbers, how each is read, and the tables; and, by the
decisions, how many tasks read each shuffle.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

import pyspark  # noqa: E402

import submitting  # noqa: E402
import tpcds  # noqa: E402
import tpch  # noqa: E402
from aqepilot import read_log, recipes  # noqa: E402
from aqepilot.analysis.pins.run import Pinned, of_run  # noqa: E402
from aqepilot.analysis.upgrade.outcomes import outcomes_of, runs_of  # noqa: E402
from aqepilot.analysis.upgrade.shown import sentence  # noqa: E402
from aqepilot.decision import COLUMNS, Decision  # noqa: E402
from aqepilot.submit.check import local_session  # noqa: E402
from aqepilot.submit.jars import minor_of  # noqa: E402
from bench import plans  # noqa: E402

WORKLOADS = {"tpcds": tpcds, "tpch": tpch}
JOB = Path(__file__).parent / "jobs" / "pinned.py"
SPARKS = ("3.5", "4.3")
# At scale factor 0.01 the usual 10 MB would have all tables broadcast, and compiling code takes
# longer than running it.
CONF = {
    "spark.sql.autoBroadcastJoinThreshold": "30KB",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.aqepilot.ask.deadline": "5s",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


def run(folder: Path, workload: str, scale: float, pins: bool, conf: Mapping[str, str]) -> None:
    """Runs the queries, and keeps their event log and what they returned."""
    minor = minor_of(pyspark.__version__)
    other = SPARKS[minor == SPARKS[0]]
    out = folder / f"{'pinned' if pins else 'watched'}-{minor}"
    (out / "events").mkdir(parents=True, exist_ok=True)
    settings = CONF | {"spark.eventLog.dir": (out / "events").as_uri()} | dict(conf)
    if not pins:
        settings |= {"spark.aqepilot.policies": "watch"} | recipes.get("watch").to_conf()
    words = [str(folder / f"pins-{other}") if pins else "-"]
    done = _submitted(out, workload, scale, (), settings, words)
    (out / "returned.json").write_text(done.strip().splitlines()[-1], "utf-8")


def repeat(folder: Path, workload: str, scale: float, only: Iterable[str], rounds: int) -> None:
    """Runs queries under plain Spark, and keeps the event log."""
    out = folder / f"repeated-{minor_of(pyspark.__version__)}"
    (out / "events").mkdir(parents=True, exist_ok=True)
    settings = CONF | {"spark.eventLog.dir": (out / "events").as_uri()}
    _submitted(out, workload, scale, only, settings, ["-", str(rounds)])


def _submitted(
    out: Path,
    workload: str,
    scale: float,
    only: Iterable[str],
    conf: Mapping[str, str],
    words: Iterable[str],
) -> str:
    """Runs queries, all if none is named, and returns what the job printed."""
    texts = {str(n): text for n, text in WORKLOADS[workload].queries().items()}
    file = out / "queries.json"
    file.write_text(json.dumps({n: texts[n] for n in only} or texts), "utf-8")
    done = submitting.submit(
        out / "job",
        JOB.read_text("utf-8"),
        conf=conf,
        job_words=[str(WORKLOADS[workload].files(scale)), str(file), *words],
        memory="2g",
        timeout_s=3600,
        env={"PYTHONPATH": str(ROOT / "python")},
    )
    if done.returncode:
        raise SystemExit(f"the job failed:\n{done.stderr[-3000:]}")
    return str(done.stdout)


def ways(folder: Path) -> dict[str, dict[str, int]]:
    """Returns the shapes that plain Spark gave each query that was repeated, and how often."""
    counted: dict[str, dict[str, int]] = {}
    for name, one in plans.every_shape(folder / "events") if folder.is_dir() else ():
        own = counted.setdefault(name, {})
        text = plans.without_races(one).text()
        own[text] = own.get(text, 0) + 1
    return counted


def make_pins(folder: Path) -> None:
    """Makes a pin of each query of each Spark, which also knows the other's fingerprint."""
    made: dict[str, dict[str, tuple[Any, list[Decision]]]] = {}
    with local_session("local[2]", "bench pins", {"spark.sql.shuffle.partitions": "4"}) as spark:
        for minor in SPARKS:
            log = read_log(spark, folder / f"watched-{minor}" / "events")
            versions = log.applications.select("log", "spark_version")
            queries = log.queries.where("decisions > 0").join(versions, "log").collect()
            decisions: dict[tuple[str, int], list[Decision]] = {}
            for row in log.decisions.orderBy("decision_id").collect():
                one = Decision(*(row[name] for name in COLUMNS))
                decisions.setdefault((row["log"], row["execution_id"]), []).append(one)
            made[minor] = {q.description: (q, decisions[q.log, q.execution_id]) for q in queries}
    for minor, runs in made.items():
        (folder / f"pins-{minor}").mkdir(exist_ok=True)
        other = made[SPARKS[minor == SPARKS[0]]]
        summaries = {}
        for name, (run, recorded) in runs.items():
            prints = {other[name][0].fingerprint} if name in other else set()
            also = sorted(prints - {run.fingerprint})
            pinned = of_run(run, recorded, also=also, name=f"pin_{name}")
            summaries[name] = summary(pinned)
            if pinned.policy:
                (folder / f"pins-{minor}" / f"{name}.toml").write_text(pinned.policy, "utf-8")
        (folder / f"pins-{minor}.json").write_text(json.dumps(summaries, indent=1), "utf-8")


def summary(pinned: Pinned) -> dict[str, Any]:
    """Returns how many pins there are, and what is not pinned."""
    return {"pins": len(pinned.pins), "unpinned": [one._asdict() for one in pinned.unpinned]}


def tasks(folder: Path, kinds: Iterable[str]) -> dict[str, dict[str, dict[str, str]]]:
    """Returns how each shuffle of each query was read, by the run and the query's description."""
    read: dict[str, dict[str, dict[str, str]]] = {}
    with local_session("local[2]", "bench pins", {"spark.sql.shuffle.partitions": "4"}) as spark:
        for kind in kinds:
            log = read_log(spark, folder / kind / "events")
            runs = runs_of(log)
            names = {one.query: one.description or "" for one in runs}
            own = read.setdefault(kind, {})
            for one in outcomes_of(log, runs):
                if one.kind == "tasks":
                    own.setdefault(names[one.query], {})[one.subject] = one.outcome
    return read


def compare(folder: Path) -> dict[str, Any]:
    """Returns, for both ways, what became of each query."""
    result: dict[str, Any] = {}
    read_as = tasks(folder, [f"{kind}-{m}" for kind in ("watched", "pinned") for m in SPARKS])
    for minor in SPARKS:
        other = SPARKS[minor == SPARKS[0]]
        wanted = plans.shapes(folder / f"watched-{other}" / "events")
        plain = plans.shapes(folder / f"watched-{minor}" / "events")
        there = plans.shapes(folder / f"pinned-{minor}" / "events")
        rows = {
            kind: json.loads((folder / kind / "returned.json").read_text("utf-8"))
            for kind in (f"watched-{minor}", f"pinned-{minor}", f"watched-{other}")
        }
        reads = read_as[f"watched-{other}"], read_as[f"pinned-{minor}"]
        pinned = json.loads((folder / f"pins-{other}.json").read_text("utf-8"))
        by_itself = [ways(folder / f"repeated-{one}") for one in (minor, other)]
        changes = named(folder, f"watched-{other}", f"pinned-{minor}")
        queries = {}
        for name in sorted(wanted, key=int):
            one, two = (side.get(name, {}) for side in reads)
            counts = {s: (one[s], two[s]) for s in one.keys() & two.keys() if one[s] != two[s]}
            queries[name] = {
                "same_shape": same(wanted[name], there.get(name)),
                "plain_has_it": same(wanted[name], plain.get(name)),
                "other_tasks": counts,
                "rows_equal": rows[f"watched-{minor}"].get(name)
                == rows[f"pinned-{minor}"].get(name),
                "rows_of_other_equal": rows[f"watched-{other}"].get(name)
                == rows[f"pinned-{minor}"].get(name),
                "wanted": wanted[name].text(),
                "there": there[name].text() if name in there else None,
                "changes": changes.get(name, []),
                "plain_ways": [sorted(one.get(name, {}).values()) for one in by_itself],
                # A query without a decision has nothing to pin.
                **pinned.get(name, {"pins": 0, "unpinned": []}),
            }
        result[f"{other} to {minor}"] = queries
    return result


def named(folder: Path, before: str, after: str) -> dict[str, list[str]]:
    """Returns what `aqepilot upgrade` names, by query: it gives the reason for another shape."""
    with local_session("local[2]", "bench pins", {"spark.sql.shuffle.partitions": "4"}) as spark:
        logs = [read_log(spark, folder / kind / "events") for kind in (before, after)]
        compared = logs[0].upgrade(logs[1])
        return {
            one.pair.before.description or "": [sentence(change) for change in one.changes]
            for one in compared.queries
        }


def same(wanted: plans.Shape, there: plans.Shape | None) -> bool:
    """Whether a plan has the shape that is wanted, but for races of AQE's stages."""
    if there is None:
        return False
    return plans.alike(plans.without_races(wanted), plans.without_races(there))


def table(result: Mapping[str, Any]) -> str:
    """Returns a table of both ways, and the queries that differ."""
    lines = [
        "| From, to | Queries | Same shape without pins | With pins | Or plain Spark has several "
        "| With pins, and as many tasks | Rows equal |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    others = []
    for way, queries in result.items():
        have = [q for q in queries.values() if q["same_shape"]]
        cells = (
            *(way, len(queries), sum(q["plain_has_it"] for q in queries.values()), len(have)),
            sum(
                q["same_shape"] or any(len(w) > 1 for w in q["plain_ways"])
                for q in queries.values()
            ),
            *(
                sum(not q["other_tasks"] for q in have),
                sum(q["rows_equal"] for q in queries.values()),
            ),
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
        others += [
            f"{way}, {name}: {'; '.join(q['changes'])}; plain Spark's runs by shape: "
            f"{q['plain_ways']}"
            for name, q in queries.items()
            if not q["same_shape"]
        ]
    return "\n".join([*lines, "", *others])


def upgrade_checked(folder: Path, result: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the queries whose plan is another one on 4.3, and those that upgrade names."""
    before, after = SPARKS
    changes = named(folder, f"watched-{before}", f"watched-{after}")
    names = result[f"{before} to {after}"]
    differ = [name for name, query in names.items() if not query["plain_has_it"]]
    listed = [name for name in names if changes.get(name)]
    return {
        "another plan": differ,
        "missed by upgrade": [name for name in differ if name not in listed],
        "named by upgrade beside them": [name for name in listed if name not in differ],
    }


def main() -> None:
    """Does one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["run", "pin", "repeat", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workload", choices=WORKLOADS, default="tpcds")
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--pins", action="store_true")
    parser.add_argument("--queries", default="", help="of repeat: their numbers")
    parser.add_argument("--rounds", type=int, default=40, help="of repeat")
    parser.add_argument("--conf", action="append", default=[])
    options = parser.parse_args()
    if options.step == "run":
        conf = dict(text.split("=", 1) for text in options.conf)
        run(options.folder, options.workload, options.scale, options.pins, conf)
    elif options.step == "pin":
        make_pins(options.folder)
    elif options.step == "repeat":
        only = [name for name in options.queries.split(",") if name]
        repeat(options.folder, options.workload, options.scale, only, options.rounds)
    else:
        result = compare(options.folder)
        (options.folder / "pins.json").write_text(json.dumps(result, indent=1), "utf-8")
        print(table(result))
        for what, names in upgrade_checked(options.folder, result).items():
            print(f"{SPARKS[0]} to {SPARKS[1]}, {what}: {len(names)}: {', '.join(names)}")


if __name__ == "__main__":
    main()

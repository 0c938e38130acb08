"""Runs reported jobs, reads what `suggest` says of their logs, and tries what it says."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import submitting
from aqepilot import catalog
from bench import turns
from bench.reported import JOBS
from bench.suggestion_tables import AGAIN, PLAIN, WITH, verdict

SCRIPTS = Path(__file__).parents[1] / "jobs"
BARE, ASKED, CHANGED = "bare", "asked", "changed"
HEAD = (
    *("job", "slots", "finding", "without aqepilot", "what is tried", "plain s", "with it s"),
    *("to plain", "noise", "files"),
)
console = Console(stderr=True, highlight=False)


class Work(NamedTuple):
    """What the job is told.

    Attributes:
        job: Its name.
        folder: Of its tables; the job writes them where there is none.
        ways: By name, the policy file, `changed` for the job with a change, or nothing.
        rounds: How often each way runs.
        warm_up: Rounds before those.
    """

    job: str
    folder: str
    ways: Mapping[str, str]
    rounds: int
    warm_up: int = 0


def measure(names: Sequence[str], rounds: int) -> dict[str, dict[str, Any]]:
    """Returns by job what is suggested about it, and its runs with that and without.

    Args:
        names: Of `bench.reported.JOBS`.
        rounds: How often each way runs.
    """
    with tempfile.TemporaryDirectory(prefix="aqepilot-reported-") as folder:
        at = {name: Path(folder, name) for name in names}
        logs = {}
        for name, own in at.items():
            own.mkdir()
            for kind in (BARE, ASKED):
                logs[name, kind] = recorded(own, name, kind)
                console.print(f"{name}: recorded, {kind}")
        suggested = suggestions(Path(folder), logs)
        return {name: tried(at[name], name, suggested[name], rounds) for name in names}


def tried(
    folder: Path, name: str, suggested: Mapping[str, list[dict[str, Any]]], rounds: int
) -> dict[str, Any]:
    """Runs a job in turn without and with what its own finding says, if there is one."""
    for kind, listed in suggested.items():
        console.print(f"{name}, {kind}: {', '.join(one['kind'] for one in listed) or 'nothing'}")
    runs: list[Any] = []
    own = _own(name, suggested)
    if own:
        way = CHANGED
        if own["policy"]:
            way = str(folder / "tried.toml")
            enforced = own["policy"].replace('mode = "shadow"', 'mode = "enforce"')
            Path(way).write_text(enforced, encoding="utf-8")
        ways = {PLAIN: "", WITH: way, AGAIN: ""}
        work = Work(name, str(folder / "tables"), ways, rounds, warm_up=1)
        for number, arm, seconds, error, files in _ran(folder, work):
            console.print(f"{name}, round {number + 1}: {arm}: {error or f'{seconds:.2f} s'}")
            if number >= 0:
                runs.append({"way": arm, "seconds": seconds, "error": error, "files": files})
    return {"suggestions": suggested, "runs": runs}


def _own(name: str, suggested: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any] | None:
    """The suggestion that names the job's trouble; null where there is none."""
    own = [one for one in suggested[ASKED] if one["kind"] == JOBS[name].finding]
    return own[0] if own else None


def recorded(folder: Path, name: str, kind: str) -> Path:
    """Runs a job once as a user does, and returns the folder of its log."""
    log, asked = folder / kind, folder / "asked.toml"
    log.mkdir()
    lines = ['name = "asked"', 'mode = "shadow"']
    lines += [f'{point} = "null"' for point in catalog.point_names()]
    asked.write_text("\n".join(lines), encoding="utf-8")
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri()}
    way = {kind: str(asked) if kind == ASKED else ""}
    work = Work(name, str(folder / "tables"), way, rounds=1)
    for _ in _ran(folder, work, conf, extension=kind == ASKED):
        pass
    return log


def _ran(
    folder: Path, work: Work, conf: Mapping[str, str] | None = None, extension: bool = True
) -> Iterator[Any]:
    """Yields what the job says of each run."""
    work_file = folder / "work.json"
    work_file.write_text(json.dumps(work._asdict()), encoding="utf-8")
    job = JOBS[work.job]
    slots = job.master.removeprefix("local[").removesuffix("]")
    for line in submitting.lines(
        folder / "job",
        (SCRIPTS / "reported.py").read_text("utf-8"),
        timeout_s=3600,
        conf={
            "spark.sql.shuffle.partitions": "200",
            "spark.default.parallelism": slots,
            **(conf or {}),
        },
        job_words=[str(work_file)],
        master=job.master,
        memory="2g",
        quick=False,
        extension=extension,
        env=turns.environment(),
    ):
        if line.startswith("RUN "):
            yield json.loads(line.removeprefix("RUN "))


def suggestions(
    folder: Path, logs: Mapping[tuple[str, str], Path]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Returns what is suggested by job and kind of log, each log by itself."""
    run = submitting.submit(
        folder / "suggested",
        (SCRIPTS / "suggested.py").read_text("utf-8"),
        job_words=[log.as_uri() for log in logs.values()],
        memory="2g",
        conf={"spark.sql.shuffle.partitions": "2"},
        env=turns.environment(),
        timeout_s=3600,
    )
    if run.returncode:
        raise SystemExit(f"no suggestions were made:\n{run.stderr[-3000:]}")
    by_job: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(dict)
    printed = json.loads(run.stdout.strip().splitlines()[-1])
    for (name, kind), result in zip(logs, printed, strict=True):
        by_job[name][kind] = result["suggestions"]
    return by_job


def table(jobs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Returns a row for each job."""
    return [_row(name, job) for name, job in jobs.items()]


def _row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    job = JOBS[name]
    kinds = {kind: [one["kind"] for one in figures["suggestions"][kind]] for kind in (BARE, ASKED)}
    named = [", ".join(kinds[kind]) or "nothing" for kind in (ASKED, BARE)]
    head = (name, job.master.removeprefix("local[").removesuffix("]"), *named)
    own = _own(name, figures["suggestions"])
    if not own:
        return (*head, "", "", "", "", "", "")
    runs: dict[str, list[Any]] = {PLAIN: [], WITH: [], AGAIN: []}
    for run in figures["runs"]:
        runs[run["way"]].append(run)
    outcome = verdict(runs)
    files = {
        way: max((count for count in runs[way][-1]["files"].values()), default=0)
        for way in (PLAIN, WITH)
    }
    return (
        *head,
        f"a policy at {own['point']}" if own["policy"] else "the change",
        *(_seconds(runs[way]) for way in (PLAIN, WITH)),
        "" if outcome.ratio is None else f"{100 * (outcome.ratio - 1):+.0f} %",
        "" if outcome.noise is None else f"{100 * (outcome.noise - 1):.0f} %",
        f"{files[PLAIN]} to {files[WITH]}" if job.finding == "small_files" else "",
    )


def _seconds(runs: Sequence[Mapping[str, Any]]) -> str:
    good = sorted(run["seconds"] for run in runs if not run["error"])
    return f"{good[len(good) // 2]:.1f}" if good else "fails"

"""What is measured of experiments, as tables: a title, a head and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]

SHARES = {
    "false alarms": "false_alarms",
    "false alarms of a t-test": "t_test",
    "5% found in 150 rounds": "found_in_150",
}
OF_JOBS_SHARES = {
    "false alarms": "false_alarms",
    "false alarms of a t-test": "t_test",
    "5% found": "found",
    "5% found, jobs' past unknown": "found_unadjusted",
    "all intervals have the 5%": "covered",
}
DAYS = {
    "looking after each run": "looking",
    "the same, by each job's mean alone": "looking_by_job",
    "the same, jobs' past unknown": "looking_unadjusted",
    "t-test on that day alone": "t_test",
    "that t-test, jobs' past unknown": "t_test_unadjusted",
}


def of(figures: Mapping[str, Any]) -> Iterator[Table]:
    """Returns a table for each part of the figures that is there."""
    for part, table in (
        ("experiments", _of_rounds),
        ("experiments_of_jobs", _of_jobs),
        ("days", _days),
        ("verdicts", _verdicts),
        ("million", _million),
        ("fleet", _fleet),
    ):
        if part in figures:
            yield table(figures[part])


def _of_rounds(rows: list[dict[str, Any]]) -> Table:
    head = ("noise", "sd of a pair", *SHARES, "median rounds until then")
    return (
        "Simulated experiments of up to 200 rounds, a look after each",
        head,
        [
            (
                of["noise"],
                f"{of['sd']:.2f}",
                *(_percent(of[share]) for share in SHARES.values()),
                f"{of['median_rounds']:.0f}" if of["median_rounds"] else "above 200",
            )
            for of in rows
        ],
    )


def _of_jobs(rows: list[dict[str, Any]]) -> Table:
    return (
        f"{rows[0]['experiments']:,} simulated experiments of each kind, of 20 daily jobs over 23 "
        "days, a look after each run",
        ("noise", "treatment", *OF_JOBS_SHARES, "median runs until then"),
        [
            (
                of["noise"],
                f"{100 * of['share']:.0f} %",
                *(_percent(of[share]) for share in OF_JOBS_SHARES.values()),
                f"{of['median_runs']:.0f}" if of["median_runs"] else "above 460",
            )
            for of in rows
        ],
    )


def _days(rows: list[dict[str, Any]]) -> Table:
    return (
        f"Days until a 5% effect on 200 daily jobs is found in four of five experiments, "
        f"{rows[0]['experiments']:,} simulated",
        ("noise", "treatment", *DAYS),
        [
            (
                of["noise"],
                f"{100 * of['share']:.0f} %",
                *(str(of[what] or "above 400") for what in DAYS.values()),
            )
            for of in rows
        ],
    )


def _verdicts(rows: list[dict[str, Any]]) -> Table:
    return (
        "A/A experiments, the verdict looked at on the end of each day",
        ("treatment", "ever wrong", "ever a job named", "experiments", "looks"),
        [
            (
                f"{100 * of['share']:.0f} %",
                _percent(of["wrong"]),
                _percent(of["harmed"]),
                f"{of['experiments']:,}",
                str(of["looks"]),
            )
            for of in rows
        ],
    )


def _million(found: dict[str, dict[str, Any]]) -> Table:
    return (
        "Analysis of the outcomes of queries, seconds",
        ("what", "step", "wall", "processors: Python", "processors: JVM"),
        [
            (what, step, *(f"{seconds:.1f}" for seconds in took))
            for what, steps in found.items()
            for step, took in steps.items()
        ],
    )


def _fleet(found: dict[str, Any]) -> Table:
    return (
        f"{found['jobs']} recurring jobs over {found['days']} simulated days",
        ("day", "runs", "verdict", "effect", "harmed", "rolled back"),
        [
            (
                str(of["day"]),
                f"{of['runs']}",
                of["verdict"],
                of["effect"],
                ", ".join(of["harmed"]),
                ", ".join(of["rolled_back"]),
            )
            for of in found["by_day"]
        ],
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

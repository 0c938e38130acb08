"""What is measured of experiments, as tables: a title, a head and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.figures import Table

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


def tables(figures: Mapping[str, Any]) -> Iterator[Table]:
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
                row["noise"],
                f"{row['sd']:.2f}",
                *(_percent(row[share]) for share in SHARES.values()),
                f"{row['median_rounds']:.0f}" if row["median_rounds"] else "above 200",
            )
            for row in rows
        ],
    )


def _of_jobs(rows: list[dict[str, Any]]) -> Table:
    return (
        f"{rows[0]['experiments']:,} simulated experiments of each kind, of 20 daily jobs over 23 "
        "days, a look after each run",
        ("noise", "treatment", *OF_JOBS_SHARES, "median runs until then"),
        [
            (
                row["noise"],
                f"{100 * row['share']:.0f} %",
                *(_percent(row[share]) for share in OF_JOBS_SHARES.values()),
                f"{row['median_runs']:.0f}" if row["median_runs"] else "above 460",
            )
            for row in rows
        ],
    )


def _days(rows: list[dict[str, Any]]) -> Table:
    return (
        f"Days until a 5% effect on 200 daily jobs is found in four of five experiments, "
        f"{rows[0]['experiments']:,} simulated",
        ("noise", "treatment", *DAYS),
        [
            (
                row["noise"],
                f"{100 * row['share']:.0f} %",
                *(str(row[what] or "above 400") for what in DAYS.values()),
            )
            for row in rows
        ],
    )


def _verdicts(rows: list[dict[str, Any]]) -> Table:
    return (
        "A/A experiments, the verdict looked at on the end of each day",
        ("treatment", "ever wrong", "ever a job named", "experiments", "looks"),
        [
            (
                f"{100 * row['share']:.0f} %",
                _percent(row["wrong"]),
                _percent(row["harmed"]),
                f"{row['experiments']:,}",
                str(row["looks"]),
            )
            for row in rows
        ],
    )


def _million(steps_by_unit: dict[str, dict[str, Any]]) -> Table:
    return (
        "Analysis of the outcomes of queries, seconds",
        ("what", "step", "wall", "processors: Python", "processors: JVM"),
        [
            (what, step, *(f"{seconds:.1f}" for seconds in took))
            for what, steps in steps_by_unit.items()
            for step, took in steps.items()
        ],
    )


def _fleet(figures: dict[str, Any]) -> Table:
    return (
        f"{figures['jobs']} recurring jobs over {figures['days']} simulated days",
        ("day", "runs", "verdict", "effect", "harmed", "rolled back"),
        [
            (
                str(day["day"]),
                f"{day['runs']}",
                day["verdict"],
                day["effect"],
                ", ".join(day["harmed"]),
                ", ".join(day["rolled_back"]),
            )
            for day in figures["by_day"]
        ],
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"

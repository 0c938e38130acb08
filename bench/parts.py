"""The parts of the bench: what each measures, and the tables that it shows."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aqepilot import texts
from bench import (
    assistant,
    autopilot,
    autopilot_days,
    drift,
    experiment_tables,
    experiments,
    first_query,
    fleet,
    history,
    logs,
    million,
    overhead,
    recipes,
    recurring,
    repeated,
    runs,
    sizes,
    slots,
    suggestion_tables,
    suggestions,
    tuning,
    ui,
)
from bench.cases import CASES
from bench.figures import Spread, Table, ratios, spread
from bench.reported import JOBS, trials
from bench.shapes import SHAPES
from bench.shapes import runs as shape_runs

Options = argparse.Namespace


class Part(NamedTuple):
    """A part of the bench.

    Attributes:
        measure: Gives its figures, more of them each time. A run that is ended early leaves those
            that it had.
        tables: Figures as tables.
    """

    measure: Callable[[Options], Iterable[Any]]
    tables: Callable[[Any, Options], Iterable[Table]]


def _chosen(names: Iterable[str], options: Options) -> list[str]:
    """Returns those that `--only` names; all without it."""
    return [name for name in names if not options.only or name in options.only]


def _each(names: Iterable[str], measure: Callable[[str], Any]) -> Iterator[dict[str, Any]]:
    figures = {}
    for name in names:
        figures[name] = measure(name)
        yield figures


_ASKS_HEAD = ("median", "p10", "p90", "asks")


def _asks(asks_by_name: Mapping[str, Sequence[float]]) -> list[tuple[str, ...]]:
    rows = {name: spread(asks) for name, asks in asks_by_name.items() if asks}
    return [
        (name, *(f"{value:.1f}" for value in row[:3]), str(row.count)) for name, row in rows.items()
    ]


def _answers(times_by_case: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    columns = ("median_ms", "p99_ms", "asked_ms")
    return [
        (name, *(f"{times[column]:.2f}" for column in columns), str(times["answers"]))
        for name, times in times_by_case.items()
    ]


def _tpch_tables(runs_by_variant: Mapping[str, Any], options: Options) -> Iterator[Table]:
    title = f"Installed without a policy: TPC-H SF{options.scale:g}, 22 queries"
    walls = {v: [sum(run["wall"].values()) for run in rs] for v, rs in runs_by_variant.items()}
    yield _paired(f"{title}, wall time", "s", walls)
    cpu = {v: [run["cpu"] for run in rs] for v, rs in runs_by_variant.items()}
    yield _paired(f"{title}, cpu time", "s", cpu)


def _paired(title: str, unit: str, by_variant: Mapping[str, Sequence[float]]) -> Table:
    rows = []
    for variant, values in by_variant.items():
        paired = ("", "", "")
        if variant != "plain":
            paired = _percent(spread(ratios(values, by_variant["plain"])))
        rows.append((variant, f"{statistics.median(values):.2f}", *paired, str(len(values))))
    return title, ("variant", f"median {unit}", "to plain, median", "p10", "p90", "rounds"), rows


def _percent(ratio: Spread) -> tuple[str, str, str]:
    median, p10, p90 = (f"{100 * (value - 1):+.1f} %" for value in ratio[:3])
    return median, p10, p90


def _sizes_tables(figures: Mapping[str, Any], options: Options) -> Iterator[Table]:
    took = [row for case in figures.items() for row in sizes.rows(*case)]
    yield f"Cost by size, {options.rounds} rounds", sizes.HEAD, took
    asked = [row for case in figures.items() for row in sizes.asked(*case)]
    yield "What was asked there", sizes.ASKED, asked


def _log_tables(log: Mapping[str, Any], _: Options) -> Iterator[Table]:
    yield (
        f"An event log of {log['megabytes']:.0f} MB, both cores (MB/s)",
        ("what", "MB/s"),
        [(what, f"{speed:.0f}") for what, speed in log["megabytes_per_second"].items()],
    )
    yield (
        f"Replay of {log['decisions']:,} decisions of {log['facts_kilobytes']:.1f} kB of facts",
        ("what", "decisions a second and core"),
        [(what, f"{n:,.0f}") for what, n in log["decisions_per_second_and_core"].items()],
    )


def _experiments(options: Options) -> Iterator[Any]:
    yield {
        "experiments": experiments.measure(options.experiments),
        "experiments_of_jobs": recurring.ab(options.experiments),
        "days": recurring.days(max(1, options.experiments // 10)),
        "verdicts": recurring.verdicts(options.experiments),
    }


def _compared_tables(figures: Mapping[str, Any], options: Options) -> Iterator[Table]:
    for name, times in figures.items():
        title = f"{name}, scale factor {options.scale:g}, {options.rounds} rounds"
        for what, (head, *rows) in (
            (title, recipes.table(times["seconds"])),
            (f"{title}, by query", recipes.by_query(times)),
        ):
            yield what, head, rows


def _shapes_tables(figures: Mapping[str, Any], options: Options, day: str = "") -> Iterator[Table]:
    for name, times in figures.items():
        title = f"{name}{day}, {SHAPES[name].master}, {options.rounds} rounds"
        yield title, shape_runs.HEAD, shape_runs.table(times)


def _overhead(options: Options) -> Iterator[Any]:
    figures: dict[str, Any] = {"sizes": overhead.sizes(options.scale, options.queries)}
    yield figures
    figures["seconds"] = overhead.seconds(options.rounds, options.scale, options.queries)
    yield figures


def _tune(name: str, options: Options) -> Any:
    bounds = (options.minutes, options.tries, options.rounds)
    if name == tuning.SIMULATED:
        return tuning.simulated(options.experiments, options.tries, options.rounds)
    if name == tuning.SAME:
        return tuning.same(options.scale, *bounds)
    return tuning.tuned(name, options.scale, *bounds, options.most, options.queries)


def _autopilot(name: str, options: Options) -> list[dict[str, Any]]:
    return autopilot.measure(
        options.fleets,
        looks_per_day=24 if name == autopilot.HOURLY else 1,
        seed=options.seed,
        of_nothing=name == autopilot.NOTHING,
    )


def _slots_rows(laid: Sequence[slots.Laid]) -> list[tuple[str, ...]]:
    return [(step.step, *map(str, step[1:]), f"{100 * step.off:+.1f} %") for step in laid]


PARTS = {
    "ask": Part(
        lambda o: [runs.ask(o.asks, o.warm_up_queries, o.only)],
        lambda asks, o: [
            (
                "One ask about shuffles of 2,000 partitions, facts included (µs)",
                ("policy", *_ASKS_HEAD),
                _asks(asks),
            )
        ],
    ),
    "short": Part(
        lambda o: [runs.short(o.asks, o.warm_up_queries)],
        lambda asks, o: [
            (
                "The asks of short queries under balanced (µs)",
                ("point", *_ASKS_HEAD),
                _asks(asks),
            )
        ],
    ),
    "python": Part(
        lambda o: [runs.python(o.python_queries)],
        lambda times, o: [
            (
                "Round trip to a Python function, in queries that run, and the whole ask (ms)",
                ("partitions, asked when, driver's Python", "median", "p99", "whole ask", "asks"),
                _answers(times),
            )
        ],
    ),
    "planning": Part(
        lambda o: [runs.planning(2 * o.rounds, o.warm_up, o.plans, o.only)],
        lambda ms, o: [_paired(f"planning of {name}", "ms", ms[name]) for name in ms],
    ),
    "sizes": Part(
        lambda o: [sizes.measure(o.rounds, o.warm_up // 2, o.only, o.sizes)], _sizes_tables
    ),
    "tpch": Part(lambda o: [runs.total(o.rounds, o.scale)], _tpch_tables),
    "log": Part(lambda o: [logs.measure(o.megabytes, o.decisions)], _log_tables),
    "million": Part(
        lambda o: [{"million": million.seconds(o.outcomes)}],
        lambda figures, o: experiment_tables.tables(figures),
    ),
    "experiments": Part(_experiments, lambda figures, o: experiment_tables.tables(figures)),
    # Those from here on take long, or write into this folder.
    "recipes": Part(
        lambda o: _each(
            _chosen(CASES, o),
            lambda name: recipes.measure(name, o.scale, o.rounds, o.queries, o.without),
        ),
        _compared_tables,
    ),
    "history": Part(
        lambda o: _each(
            _chosen(history.BENCHMARKS, o),
            lambda name: history.measure(name, o.rounds, o.scale, o.queries, o.without),
        ),
        _compared_tables,
    ),
    "shapes": Part(
        lambda o: _each(
            _chosen(SHAPES, o), lambda name: shape_runs.measure(name, o.rounds, o.queries)
        ),
        _shapes_tables,
    ),
    "second_day": Part(
        lambda o: _each(
            _chosen(SHAPES, o),
            lambda name: shape_runs.measure(name, o.rounds, o.queries, second_day=True),
        ),
        lambda figures, o: _shapes_tables(figures, o, ", the second day"),
    ),
    "drift": Part(
        lambda o: [drift.measure(o.days, o.rounds)],
        lambda rows, o: [
            (
                f"Inputs that change from day to day, {o.rounds} rounds a day",
                drift.HEAD,
                drift.table(rows),
            )
        ],
    ),
    "fleet": Part(
        lambda o: [{"fleet": fleet.measure(o.jobs, o.days, o.scale, o.queries)}],
        lambda figures, o: experiment_tables.tables(figures),
    ),
    "repeats": Part(
        lambda o: [str(repeated.record(o.rounds, o.scale, o.queries))],
        lambda file, o: [("Repeated runs", ("written",), [(file,)])],
    ),
    "slots": Part(
        lambda o: [slots.measure()],
        lambda laid, o: [
            (
                "Stages that wait, laid out on more slots from a log of two (ms)",
                ("step", "slots", "on two", "estimated", "real", "estimate to real"),
                _slots_rows(laid),
            )
        ],
    ),
    "suggestions": Part(
        lambda o: _each(
            suggestions.chosen(o.only, o.queries),
            lambda name: suggestions.measure(name, o.rounds, o.scale, o.queries),
        ),
        lambda figures, o: suggestion_tables.tables(figures, o.rounds),
    ),
    "reported": Part(
        lambda o: [trials.measure(_chosen(JOBS, o), o.rounds)],
        lambda figures, o: [
            (
                f"What is suggested about reported jobs, {texts.plural(o.rounds, 'round')} of it",
                trials.HEAD,
                trials.table(figures),
            )
        ],
    ),
    "overhead": Part(_overhead, lambda figures, o: overhead.tables(figures, o.scale)),
    "first_query": Part(
        lambda o: [first_query.measure(_chosen(first_query.JOBS, o), o.rounds, o.scale, o.master)],
        lambda figures, o: first_query.tables(figures),
    ),
    "assistant": Part(
        lambda o: [assistant.measure(o.megabytes)],
        lambda figures, o: [assistant.table(figures)],
    ),
    "tune": Part(
        lambda o: _each(_chosen(tuning.NAMES, o), lambda name: _tune(name, o)),
        lambda figures, o: tuning.tables(figures),
    ),
    "ui": Part(
        lambda o: [ui.measure(o.shown, o.applications, o.rounds)],
        lambda figures, o: ui.tables(figures),
    ),
    "autopilot": Part(
        lambda o: _each(_chosen(autopilot.KINDS, o), lambda name: _autopilot(name, o)),
        lambda figures, o: [
            (
                "The autopilot over simulated fleets of 200 daily jobs, 90 days",
                autopilot.HEAD,
                autopilot.table(figures),
            )
        ],
    ),
    "autopilot_days": Part(
        lambda o: [autopilot_days.measure(o.days, o.scale)],
        lambda figures, o: [
            (
                "The autopilot over a fleet that runs",
                autopilot_days.HEAD,
                autopilot_days.table(figures),
            )
        ],
    ),
}
DEFAULT = tuple(PARTS)[: tuple(PARTS).index("recipes")]

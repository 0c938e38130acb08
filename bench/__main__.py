"""`python -m bench`: measures, prints a markdown table and writes all figures as JSON.

Nothing here passes or fails: figures depend on the machine and on what else it does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

import tpcds  # noqa: E402
from aqepilot import texts  # noqa: E402
from bench import (  # noqa: E402
    assistant,
    drift,
    experiment_tables,
    first_query,
    history,
    logs,
    machine,
    overhead,
    recipes,
    runs,
    sizes,
    suggestion_tables,
    suggestions,
    tuning,
    ui,
)
from bench.cases import CASES  # noqa: E402
from bench.figures import Spread, ratios, spread  # noqa: E402
from bench.reported import JOBS, trials  # noqa: E402
from bench.shapes import SHAPES  # noqa: E402
from bench.shapes import runs as shape_runs  # noqa: E402

NAMES = list(
    dict.fromkeys(
        [
            *(*runs.ASKS, *runs.PLANNED, *sizes.KINDS, *CASES, *SHAPES),
            *(
                *suggestions.BENCHMARKS,
                *JOBS,
                *first_query.JOBS,
                *history.BENCHMARKS,
                *tuning.NAMES,
            ),
        ]
    )
)
SIZES = list(dict.fromkeys(str(case.size) for case in sizes.CASES))
PYTHON_MS = ("median_ms", "p99_ms", "asked_ms")
# Those behind `experiments` take long, or write into this folder.
PARTS = (
    *("ask", "short", "python", "planning", "sizes", "tpch", "log", "million", "experiments"),
    *("recipes", "shapes", "second_day", "fleet", "repeats", "slots", "suggestions", "reported"),
    *("overhead", "first_query", "history", "drift", "assistant", "tune", "ui", "autopilot"),
    "autopilot_days",
)


def _chosen(names: Iterable[str], options: argparse.Namespace) -> list[str]:
    """Returns those that `--only` names; all without it."""
    return [name for name in names if not options.only or name in options.only]


def main() -> None:
    options = _options()
    where = machine.describe()
    figures: dict[str, Any] = {}
    if "ask" in options.part:
        figures["ask_us"] = runs.ask(options.asks, options.warm_up_queries, options.only)
    if "short" in options.part:
        figures["short_us"] = runs.short(options.asks, options.warm_up_queries)
    if "python" in options.part:
        figures["python"] = runs.python(options.python_queries)
    if "planning" in options.part:
        figures["planning_ms"] = runs.planning(
            2 * options.rounds, options.warm_up, options.plans, options.only
        )
    if "sizes" in options.part:
        figures["sizes"] = sizes.measure(
            options.rounds, options.warm_up // 2, options.only, options.sizes
        )
    if "tpch" in options.part:
        figures["tpch_s"] = runs.total(options.rounds, options.scale)
    if "log" in options.part:
        figures["log"] = logs.measure(options.megabytes, options.decisions)
    if "assistant" in options.part:
        figures["assistant"] = assistant.measure(options.megabytes)
    if "ui" in options.part:
        figures["ui"] = ui.measure(options.shown, options.applications, options.rounds)
    if "recipes" in options.part:
        figures["recipes"] = {}
        for name in _chosen(CASES, options):
            figures["recipes"][name] = recipes.measure(
                name, options.scale, options.rounds, options.queries, options.without
            )
            _write(options, where, figures)
    if "history" in options.part:
        figures["history"] = {}
        for name in _chosen(history.BENCHMARKS, options):
            figures["history"][name] = history.measure(
                name, options.rounds, options.scale, options.queries, options.without
            )
            _write(options, where, figures)
    if "drift" in options.part:
        figures["drift"] = drift.measure(options.days, options.rounds)
    for part in [part for part in ("shapes", "second_day") if part in options.part]:
        figures[part] = {}
        for name in _chosen(SHAPES, options):
            figures[part][name] = shape_runs.measure(
                name, options.rounds, options.queries, second_day=part == "second_day"
            )
            _write(options, where, figures)
    if "suggestions" in options.part:
        figures["suggestions"] = {}
        for name in suggestions.chosen(options.only, options.queries):
            figures["suggestions"][name] = suggestions.measure(
                name, options.rounds, options.scale, options.queries
            )
            _write(options, where, figures)
    if "reported" in options.part:
        figures["reported"] = trials.measure(_chosen(JOBS, options), options.rounds)
    if "overhead" in options.part:
        figures["overhead"] = {"sizes": overhead.sizes(options.scale, options.queries)}
        _write(options, where, figures)
        figures["overhead"]["seconds"] = overhead.seconds(
            options.rounds, options.scale, options.queries
        )
    if "first_query" in options.part:
        names = _chosen(first_query.JOBS, options)
        figures["first_query"] = first_query.measure(
            names, options.rounds, options.scale, options.master
        )
    if "experiments" in options.part:
        from bench import experiments, recurring

        figures["experiments"] = experiments.measure(options.experiments)
        figures["experiments_of_jobs"] = recurring.ab(options.experiments)
        figures["days"] = recurring.days(max(1, options.experiments // 10))
        figures["verdicts"] = recurring.verdicts(options.experiments)
    if "autopilot" in options.part:
        from bench import autopilot

        figures["autopilot"] = {}
        for looks, name in ((1, "each night"), (24, "each hour")):
            if looks in options.looks:
                fleets = autopilot.measure(options.fleets, looks_per_day=looks, seed=options.seed)
                figures["autopilot"][name] = fleets
                _write(options, where, figures)
        if 1 in options.looks:
            figures["autopilot"][autopilot.NOTHING] = autopilot.measure(
                options.fleets, seed=options.seed, of_nothing=True
            )
    if "autopilot_days" in options.part:
        from bench import autopilot_days

        figures["autopilot_days"] = autopilot_days.measure(options.days, options.scale)
    if "million" in options.part:
        from bench import million

        figures["million"] = million.seconds(options.outcomes)
    if "fleet" in options.part:
        from bench import fleet

        size = (options.jobs, options.days, options.scale, options.queries)
        figures["fleet"] = fleet.measure(*size)
    if "tune" in options.part:
        figures["tune"] = {}
        bounds = (options.minutes, options.tries, options.rounds)
        for name in _chosen(tuning.NAMES, options):
            if name == tuning.SIMULATED:
                outcome: Any = tuning.simulated(options.experiments, options.tries, options.rounds)
            elif name == tuning.SAME:
                outcome = tuning.same(options.scale, *bounds)
            else:
                outcome = tuning.tuned(name, options.scale, *bounds, options.most, options.queries)
            figures["tune"][name] = outcome
            _write(options, where, figures)
    if "slots" in options.part:
        from bench import slots

        figures["slots"] = slots.measure()
    if "repeats" in options.part:
        from bench import repeated

        print(f"written: {repeated.record(options.rounds, options.scale, options.queries)}")
    print(_write(options, where, figures))
    print(f"\nwritten: {options.out}/bench-spark-{where['spark']}.json, .md", file=sys.stderr)


def _write(options: argparse.Namespace, where: dict[str, Any], figures: dict[str, Any]) -> str:
    """Writes what is measured so far, so that a run that is ended early leaves it; the tables."""
    text = report(where, figures, options.scale, options.rounds)
    options.out.mkdir(parents=True, exist_ok=True)
    name = f"bench-spark-{where['spark']}"
    measured = datetime.now(timezone.utc).isoformat(timespec="seconds")
    content = {"measured": measured, "machine": where, "figures": figures}
    (options.out / f"{name}.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    (options.out / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    return text


def report(where: dict[str, Any], figures: dict[str, Any], scale: float, rounds: int) -> str:
    """Returns the figures as markdown."""
    lines = [", ".join(f"{key} {value}" for key, value in where.items()), ""]
    if "ask_us" in figures:
        lines += _table(
            "One ask about shuffles of 2,000 partitions, facts included (µs)",
            ("policy", "median", "p10", "p90", "asks"),
            [_row(name, spread(asks)) for name, asks in figures["ask_us"].items() if asks],
        )
    if "short_us" in figures:
        lines += _table(
            "The asks of short queries under balanced (µs)",
            ("point", "median", "p10", "p90", "asks"),
            [_row(point, spread(asks)) for point, asks in figures["short_us"].items()],
        )
    if "python" in figures:
        lines += _table(
            "Round trip to a Python function, in queries that run, and the whole ask (ms)",
            ("partitions, asked when, driver's Python", "median", "p99", "whole ask", "asks"),
            [
                (name, *(f"{times[ms]:.2f}" for ms in PYTHON_MS), str(times["answers"]))
                for name, times in figures["python"].items()
            ],
        )
    if "log" in figures:
        log = figures["log"]
        lines += _table(
            f"An event log of {log['megabytes']:.0f} MB, both cores (MB/s)",
            ("what", "MB/s"),
            [(what, f"{speed:.0f}") for what, speed in log["megabytes_per_second"].items()],
        )
        lines += _table(
            f"Replay of {log['decisions']:,} decisions of {log['facts_kilobytes']:.1f} kB of facts",
            ("what", "decisions a second and core"),
            [(what, f"{n:,.0f}") for what, n in log["decisions_per_second_and_core"].items()],
        )
    if "autopilot" in figures:
        from bench import autopilot

        title = "The autopilot over simulated fleets of 200 daily jobs, 90 days"
        lines += _table(title, autopilot.HEAD, autopilot.table(figures["autopilot"]))
    if "autopilot_days" in figures:
        from bench import autopilot_days

        title = "The autopilot over a fleet that runs"
        lines += _table(title, autopilot_days.HEAD, autopilot_days.table(figures["autopilot_days"]))
    if "assistant" in figures:
        lines += _table(*assistant.table(figures["assistant"]))
    for table in ui.tables(figures["ui"]) if "ui" in figures else ():
        lines += _table(*table)
    if "slots" in figures:
        lines += _table(
            "Stages that wait, laid out on more slots from a log of two (ms)",
            ("step", "slots", "on two", "estimated", "real", "estimate to real"),
            [
                (step.step, *map(str, step[1:]), f"{100 * step.off:+.1f} %")
                for step in figures["slots"]
            ],
        )
    for table in experiment_tables.tables(figures):
        lines += _table(*table)
    pairs = []
    if "planning_ms" in figures:
        pairs += [(f"planning of {name}", "ms", ms) for name, ms in figures["planning_ms"].items()]
    if "tpch_s" in figures:
        totals = figures["tpch_s"].items()
        title = f"Installed without a policy: TPC-H SF{scale:g}, 22 queries"
        walls = {v: [sum(r["wall"].values()) for r in rs] for v, rs in totals}
        pairs.append((f"{title}, wall time", "s", walls))
        pairs.append((f"{title}, cpu time", "s", {v: [r["cpu"] for r in rs] for v, rs in totals}))
    for title, unit, by_variant in pairs:
        plain = by_variant["plain"]
        rows = []
        for variant, values in by_variant.items():
            ratio = spread(ratios(values, plain))
            paired = ("", "", "") if variant == "plain" else _percent(ratio)
            rows.append((variant, f"{statistics.median(values):.2f}", *paired, str(len(values))))
        head = ("variant", f"median {unit}", "to plain, median", "p10", "p90", "rounds")
        lines += _table(title, head, rows)
    if "sizes" in figures:
        took = [row for case in figures["sizes"].items() for row in sizes.rows(*case)]
        lines += _table(f"Cost by size, {rounds} rounds", sizes.HEAD, took)
        asked = [row for case in figures["sizes"].items() for row in sizes.asked(*case)]
        lines += _table("What was asked there", sizes.ASKED, asked)
    compared = {**figures.get("recipes", {}), **figures.get("history", {})}
    for name, times in compared.items():
        title = f"{name}, scale factor {scale:g}, {rounds} rounds"
        for what, (head, *rows) in (
            (title, recipes.table(times["seconds"])),
            (f"{title}, by query", recipes.by_query(times)),
        ):
            lines += _table(what, head, rows)
    if "drift" in figures:
        title = f"Inputs that change from day to day, {rounds} rounds a day"
        lines += _table(title, drift.HEAD, drift.table(figures["drift"]))
    for part, day in (("shapes", ""), ("second_day", ", the second day")):
        for name, times in figures.get(part, {}).items():
            title = f"{name}{day}, {SHAPES[name].master}, {rounds} rounds"
            lines += _table(title, shape_runs.HEAD, shape_runs.table(times))
    if "suggestions" in figures:
        for table in suggestion_tables.tables(figures["suggestions"], rounds):
            lines += _table(*table)
    if "reported" in figures:
        title = f"What is suggested about reported jobs, and {texts.plural(rounds, 'round')} of it"
        lines += _table(title, trials.HEAD, trials.table(figures["reported"]))
    if "first_query" in figures:
        for table in first_query.tables(figures["first_query"]):
            lines += _table(*table)
    for table in tuning.tables(figures.get("tune", {})):
        lines += _table(*table)
    for table in overhead.tables(figures.get("overhead", {}), scale):
        lines += _table(*table)
    return "\n".join(lines)


def _row(name: str, spread: Spread) -> tuple[str, ...]:
    return (
        name,
        f"{spread.median:.1f}",
        f"{spread.p10:.1f}",
        f"{spread.p90:.1f}",
        str(spread.count),
    )


def _percent(ratio: Spread) -> tuple[str, str, str]:
    median, p10, p90 = (f"{100 * (value - 1):+.1f} %" for value in ratio[:3])
    return median, p10, p90


def _table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    rule = "|".join(["---", *["---:"] * (len(head) - 1)])
    body = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return [f"**{title}**", "", body[0], f"|{rule}|", *body[1:], ""]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "part",
        nargs="*",
        help=f"some of {', '.join(PARTS)}; default: all up to experiments",
    )
    parser.add_argument("--rounds", type=int, default=6, help="runs of each variant (default 6)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="scale factor of the data (default 1)"
    )
    parser.add_argument(
        "--asks", type=int, default=30, help="timed queries of ask and short (default 30)"
    )
    parser.add_argument(
        "--warm-up-queries", type=int, default=600, help="queries before those (default 600)"
    )
    parser.add_argument(
        "--python-queries",
        type=int,
        default=600,
        help="queries that ask a Python function, after as many to warm up (default 600)",
    )
    parser.add_argument(
        "--experiments", type=int, default=2000, help="simulated, of each kind (default 2000)"
    )
    parser.add_argument(
        "--outcomes", type=int, default=1_000_000, help="that are analysed (default 1,000,000)"
    )
    parser.add_argument("--tries", type=int, default=15, help="of a search (default 15)")
    parser.add_argument(
        "--minutes", type=float, default=60, help="after which no search begins (default 60)"
    )
    parser.add_argument(
        "--most", type=int, default=20, help="queries that are tuned, the dearest (default 20)"
    )
    parser.add_argument("--jobs", type=int, default=20, help="of the fleet (default 20)")
    parser.add_argument(
        "--days", type=int, default=28, help="of the fleet and of drift (default 28)"
    )
    parser.add_argument("--fleets", type=int, default=5, help="of autopilot (default 5)")
    parser.add_argument(
        "--looks",
        type=lambda text: [int(word) for word in _words(text)],
        default=[1, 24],
        help="of autopilot in a day: 1, 24 or both (default 1,24)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of autopilot (default 1)")
    parser.add_argument("--megabytes", type=int, default=1000, help="of the log (default 1000)")
    parser.add_argument(
        "--decisions", type=int, default=400_000, help="that are replayed (default 400,000)"
    )
    parser.add_argument(
        "--shown",
        type=int,
        default=2000,
        help="decisions of the log that ui opens (default 2,000; 0 opens none)",
    )
    parser.add_argument(
        "--applications",
        type=int,
        default=1000,
        help="that a history server lists for ui (default 1,000; 0 lists none)",
    )
    parser.add_argument(
        "--plans", type=int, default=100, help="timed plannings a round (default 100)"
    )
    parser.add_argument("--warm-up", type=int, default=300, help="plannings before (default 300)")
    parser.add_argument(
        "--only",
        type=_words,
        default=[],
        metavar="NAMES",
        help="of ask, planning, sizes, recipes, shapes, suggestions and reported, these only: "
        + ", ".join(NAMES),
    )
    parser.add_argument(
        "--sizes",
        type=_words,
        default=[],
        metavar="NUMBERS",
        help=f"of joins and of partitions, some of {', '.join(SIZES)}",
    )
    parser.add_argument(
        "--queries", type=_words, default=[], metavar="NAMES", help="of their queries, these only"
    )
    parser.add_argument(
        "--without",
        type=_words,
        default=[],
        metavar="VARIANTS",
        help='of recipes and history, not these variants: --without "plain again"',
    )
    parser.add_argument("--master", default="local[2]", help="of first_query: where its jobs run")
    parser.add_argument("--quick", action="store_true", help="2 rounds, scale 0.1, few repetitions")
    parser.add_argument("--out", type=Path, default=Path("target/bench"), help="for the figures")
    options = parser.parse_args()
    unknown = set(options.part) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    unknown = set(options.only) - set(NAMES)
    if unknown:
        parser.error(
            f"nothing to measure {', '.join(sorted(unknown))} by; there are {', '.join(NAMES)}"
        )
    unknown = set(options.sizes) - set(SIZES)
    if unknown:
        parser.error(f"no size {', '.join(sorted(unknown))}; there are {', '.join(SIZES)}")
    if options.without:
        cases = [case for name, case in CASES.items() if name in (options.only or CASES)]
        known = dict.fromkeys(name for case in cases for name in recipes.variants(case))
        known |= dict.fromkeys(history.variants())
        known.pop(recipes.PLAIN, None)
        unknown = set(options.without) - set(known)
        if unknown:
            parser.error(f"cannot leave out {', '.join(sorted(unknown))}; can: {', '.join(known)}")
    if options.queries:
        measured = [name for name in CASES if name in (options.only or CASES)]
        known = dict.fromkeys(query for name in measured for query in CASES[name].queries())
        shapes = [shape for name, shape in SHAPES.items() if name in (options.only or SHAPES)]
        known |= dict.fromkeys(q for one in shapes for q in (*one.queries, *one.counters))
        learned = [one for name, one in history.BENCHMARKS.items() if name in options.only]
        known |= dict.fromkeys(query for one in learned for query in one.queries())
        if {"fleet", "repeats", "suggestions", "overhead"} & set(options.part):
            known |= dict.fromkeys(str(number) for number in tpcds.queries())
        unknown = set(options.queries) - set(known)
        if unknown:
            parser.error(f"no query {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    options.part = options.part or PARTS[: PARTS.index("recipes")]
    if options.quick:
        options.rounds, options.scale, options.asks = 2, 0.1, 6
        options.python_queries = 20
        options.megabytes, options.decisions = 100, 50_000
        options.shown, options.applications = 200, 50
        options.experiments, options.outcomes = 30, 20_000
        options.plans = options.warm_up = options.warm_up_queries = 20
    return options


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


if __name__ == "__main__":
    main()

"""The command line of the bench."""

from __future__ import annotations

import argparse
from pathlib import Path

import tpcds
from bench import autopilot, first_query, history, recipes, runs, sizes, suggestions, tuning
from bench.cases import CASES
from bench.parts import DEFAULT, PARTS
from bench.reported import JOBS
from bench.shapes import SHAPES

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
                *autopilot.KINDS,
            ),
        ]
    )
)
SIZES = list(dict.fromkeys(str(case.size) for case in sizes.CASES))


def read(description: str | None) -> argparse.Namespace:
    """Returns the options of this process; ends it with a message where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=description)
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
        help="of a part that has several, these only: " + ", ".join(NAMES),
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
    options.part = options.part or DEFAULT
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

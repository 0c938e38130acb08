"""The autopilot over a simulated fleet: what it gains, what it harms, and how often it is wrong.

Only runs are simulated. The looks are those of `aqepilot autopilot run`: the same steps, journal,
control file and file of settings, out of which each simulated run reads its arms.

- A job is a few queries of TPC-DS; a run takes the sum of what these took in one of the recorded
  rounds (`repeated_runs.csv`), times the job's size of that day.
- Inputs drift: a random walk of each job, and a weekday of the fleet.
- One run in a hundred fails.
"""

from __future__ import annotations

import csv
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aqepilot import control
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.autopilot.autopilot import Autopilot
from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Evidence, Shadow, names
from aqepilot.autopilot.journal import LIVE
from aqepilot.autopilot.state import State
from aqepilot.experiment.assignment import arm_of, bucket, parse_arms
from aqepilot.policies import PREFIX
from bench import repeated

JOBS, DAYS, PAST = 200, 90, 14
TURN = 40
FAILS = 0.01
BUDGET_HOURS = 250.0
_FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)
_ZERO = _FIRST.timestamp() / 86400
_HOUR = 3_600_000.0
GOOD, NEUTRAL, BAD, TURNING = "good", "neutral", "bad", "turning"


class Planted(NamedTuple):
    """A policy whose effect is known.

    Attributes:
        kind: One of the four.
        effect: On the logarithm of the time.
        turned: The effect from the day `TURN` on.
        candidate: What the autopilot sees of it.
    """

    kind: str
    effect: float
    turned: float
    candidate: Candidate

    def on(self, day: float) -> float:
        """Returns its effect on a day."""
        return self.turned if day >= TURN else self.effect


@cache
def _took() -> Any:
    """What each query took in each round, an array of rounds and queries."""
    with repeated.FILE.open(encoding="utf-8", newline="") as lines:
        rows = [(int(r["round"]), r["query"], float(r["task_ms"])) for r in csv.DictReader(lines)]
    rounds = sorted({row[0] for row in rows})
    queries = sorted({row[1] for row in rows})
    took = np.ones((len(rounds), len(queries)))
    for number, query, ms in rows:
        took[rounds.index(number), queries.index(query)] = max(1.0, ms)
    return took


class Fleet:
    """Jobs with their policies.

    Args:
        generator: Of all draws.
        jobs: How many.
        per_day: Runs of each job a day.
        of_nothing: Whether each job has one policy, and none has an effect.
    """

    def __init__(
        self, generator: np.random.Generator, jobs: int, per_day: int, of_nothing: bool = False
    ) -> None:
        self._generator = generator
        self._of_nothing = of_nothing
        self.jobs = [f"daily.{number:03}" for number in range(jobs)]
        self.per_day = per_day
        queries = _took().shape[1]
        self._queries = [
            generator.choice(queries, generator.integers(4, 13), replace=False) for _ in self.jobs
        ]
        # An hour a day in the median, and ten times as much in one job of forty.
        self.hours = np.exp(generator.normal(0, 1.1, jobs))
        self._walk = np.zeros(jobs)
        self._hour = generator.uniform(0, 23, jobs)
        self.planted = {job: list(self._plant(job, number)) for number, job in enumerate(self.jobs)}
        self.by_name = {
            f"autopilot_{one.candidate.id}": one for some in self.planted.values() for one in some
        }

    def _plant(self, job: str, number: int) -> Iterator[Planted]:
        """Two jobs in five have a policy that helps; it may not be the one with most at stake."""
        kinds: list[str] = []
        if number < 2:
            kinds = [TURNING]
        elif number % 5 < 2:
            kinds = [GOOD]
        if number % 3 == 1:
            kinds.append(NEUTRAL)
        if number % 5 == 3:
            kinds.append(BAD)
        for kind in [NEUTRAL] if self._of_nothing else kinds:
            draw = self._generator.uniform
            effect = {
                GOOD: math.log(draw(0.4, 0.85)),
                NEUTRAL: 0.0,
                BAD: math.log(draw(1.15, 2.0)),
                TURNING: math.log(0.6),
            }[kind]
            turned = math.log(1.5) if kind == TURNING else effect
            # What is at stake is known roughly, and does not say what helps.
            stake = self.hours[number] * _HOUR * draw(0.2, 0.6)
            recipe = {GOOD: "hot_keys", TURNING: "hot_keys"}.get(kind, f"guess_{number % 4}")
            text = f"name = \"p\"\nskew_join = \"'{kind}' = '{job}'\"\n"
            yield Planted(
                kind,
                effect,
                turned,
                Candidate(
                    job=job,
                    shape="hot_key",
                    recipe=recipe,
                    source="suggestions",
                    text=text,
                    stake_ms=stake,
                ),
            )

    def fails(self) -> bool:
        """Whether the next run fails, whatever decides in it."""
        return bool(self._generator.random() < FAILS)

    def day(self, day: int) -> Iterator[tuple[float, int, float, float]]:
        """Yields the runs of a day: when they end, which job's, logarithms of size and of time."""
        self._walk += self._generator.normal(0, 0.03, len(self.jobs))
        weekday = 0.1 * math.sin(2 * math.pi * (day % 7) / 7)
        took = _took()
        for number in range(len(self.jobs)):
            for run in range(self.per_day):
                own = took[:, self._queries[number]]
                noise = math.log(
                    own[self._generator.integers(len(own))].sum() / np.median(own, axis=0).sum()
                )
                size = self._walk[number] + weekday + self._generator.normal(0, 0.1)
                hour = (self._hour[number] + 24 * run / self.per_day) % 23
                base = math.log(self.hours[number] * _HOUR / self.per_day)
                yield day + hour / 24, number, size, base + 0.8 * size + noise


class World:
    """What the autopilot sees of the fleet: runs in the order in which they end.

    Args:
        fleet: The jobs.
        days: How many, after those of the past.
        autopilot: Whose settings the runs have.
    """

    def __init__(self, fleet: Fleet, days: int, autopilot: Autopilot) -> None:
        self.fleet = fleet
        self._autopilot = autopilot
        n = len(fleet.jobs) * fleet.per_day * (PAST + days)
        self._n = 0
        self._ended, self._ms, self._size = np.zeros(n), np.zeros(n), np.zeros(n)
        self._share = np.full(n, 0.5)
        self._treated, self._counted, self._failed = (np.zeros(n, dtype=bool) for _ in range(3))
        self._job, self._experiment = np.empty(n, dtype=object), np.empty(n, dtype=object)
        self.shadows: dict[str, Shadow] = {}
        self.gain_ms, self.oracle_ms = np.zeros(days), np.zeros(days)
        self.harm_ms = np.zeros(days)
        self._settings: dict[str, dict[str, str]] = {}

    def read_settings(self) -> None:
        """Reads what is live, as submissions do."""
        text = self._autopilot.journal.text(LIVE)
        self._settings = json.loads(text)["jobs"] if text else {}

    def looks(self, days: int, per_day: int) -> Iterator[float]:
        """Yields the time of each look, when what ends before it has run."""
        for day in range(-PAST, days):
            runs = sorted(self.fleet.day(day))
            for at in [day + (n + 1) / per_day for n in range(per_day)]:
                while runs and runs[0][0] < at:
                    self.run(runs.pop(0), self.fleet.fails())
                if day >= 0 or at == 0:
                    yield at

    def run(self, run: tuple[float, int, float, float], failed: bool) -> None:
        """Simulates a run under the settings that are live."""
        ended, number, size, y = run
        job = self.fleet.jobs[number]
        conf = self._settings.get(job, {})
        policies, name, share = self._drawn(conf, f"{job}|{ended:.4f}")
        effect = sum(self.fleet.by_name[policy].on(ended) for policy in policies)
        i = self._n
        self._n += 1
        self._ended[i], self._size[i], self._job[i] = _ZERO + ended, math.exp(20 + size), job
        self._ms[i], self._failed[i] = math.exp(y + effect), failed
        self._experiment[i] = name
        self._counted[i] = bool(name)
        self._share[i] = share
        self._treated[i] = bool(name) and self._is_treated
        day = math.floor(ended)
        if day >= 0:
            best = min((one.on(ended) for one in self.fleet.planted[job]), default=0.0)
            self.oracle_ms[day] += math.exp(y) * -math.expm1(min(best, 0.0))
            self.gain_ms[day] += math.exp(y) * -math.expm1(effect)
            self.harm_ms[day] += math.exp(y) * max(math.expm1(effect), 0.0)

    def _drawn(self, conf: dict[str, str], unit: str) -> tuple[list[str], str, float]:
        """The policies of a run, its experiment and the treatment's share; counts shadows."""
        modes = {
            key.split(".")[-2]: value
            for key, value in conf.items()
            if key.startswith(f"{PREFIX}policy.") and key.endswith(".mode")
        }
        self._is_treated = False
        if text := conf.get(f"{PREFIX}experiment.arms"):
            name = conf[f"{PREFIX}experiment.name"]
            arms = parse_arms(text)
            arm = arm_of(arms, bucket("", name, unit))
            self._is_treated = arm == arms[1]
            return list(arm.policies), name, arms[1].weight / 10_000
        listed = [one for one in conf.get(f"{PREFIX}policies", "").split(",") if one]
        for policy in listed:
            if modes[policy] == "shadow":
                before = self.shadows.get(policy, Shadow(0, 0, 0))
                self.shadows[policy] = Shadow(before.runs + 1, before.answers + 1, 0)
        return [policy for policy in listed if modes[policy] == "enforce"], "", 0.5

    def known(self, day: float) -> tuple[Evidence, list[Candidate]]:
        """Returns what is known at a time."""
        rows = slice(0, self._n)
        runs = Runs(
            ended=self._ended[rows],
            job=self._job[rows],
            treated=self._treated[rows],
            counted=self._counted[rows],
            share=self._share[rows],
            exposed=self._counted[rows],
            failed=self._failed[rows],
            input_bytes=self._size[rows],
            metrics={"task_ms": self._ms[rows]},
        )
        candidates = [one.candidate for some in self.fleet.planted.values() for one in some]
        evidence = Evidence(_ZERO + day, runs, names(self._experiment[rows]), dict(self.shadows))
        return evidence, candidates


def simulated(
    generator: np.random.Generator,
    jobs: int = JOBS,
    days: int = DAYS,
    looks_per_day: int = 1,
    per_day: int = 1,
    budget_hours: float = BUDGET_HOURS,
    of_nothing: bool = False,
) -> dict[str, Any]:
    """Runs a fleet for some days, and the autopilot on it.

    Args:
        generator: Of all draws.
        jobs: How many.
        days: How many.
        looks_per_day: 1 looks each night, 24 each hour.
        per_day: Runs of each job a day.
        budget_hours: Of harm, in 30 days.
        of_nothing: As for `Fleet`.
    """
    with tempfile.TemporaryDirectory(prefix="aqepilot-autopilot-") as name:
        folder = Path(name)
        rules = str(folder / "control.json")
        control.lift(rules)
        definition = Definition(
            state=str(folder / "state"),
            jobs=("daily.*",),
            deliver="live",
            control=rules,
            harm_hours=budget_hours,
        )
        (folder / "state").mkdir()
        autopilot = Autopilot(definition)
        fleet = Fleet(generator, jobs, per_day, of_nothing)
        world = World(fleet, days, autopilot)
        for at in world.looks(days, looks_per_day):
            look(autopilot, world, at)
            world.read_settings()
        return _outcome(world, autopilot, definition)


def look(autopilot: Autopilot, world: World, at: float) -> None:
    """Takes one look, at a time in days."""
    now = _FIRST + timedelta(days=at)
    autopilot.look(f"{now:%Y-%m-%dT%H}", lambda _: world.known(at), with_figures=False, now=now)


def _outcome(world: World, autopilot: Autopilot, definition: Definition) -> dict[str, Any]:
    state = autopilot.journal.read()
    planted = world.fleet.by_name
    events = autopilot.journal.events()
    promoted = [e for e in events if e.step == "promote"]
    kinds = [planted[f"autopilot_{e.trial}"].kind for e in promoted]
    to_promote = [e.day - _started(state, e.trial, events) for e in promoted]
    gain, oracle = world.gain_ms, world.oracle_ms
    month = min(definition.harm_days, len(world.harm_ms))
    windows = np.convolve(world.harm_ms, np.ones(month), "valid") / _HOUR
    turned = [
        e.day - _ZERO - TURN
        for e in events
        if e.step == "end" and planted[f"autopilot_{e.trial}"].kind == TURNING
    ]
    ended_bad = [
        e.day - _started(state, e.trial, events)
        for e in events
        if e.step == "end" and planted[f"autopilot_{e.trial}"].kind == BAD and e.figures
    ]

    def captured(first: int, last: int) -> float:
        whole = float(oracle[first:last].sum())
        return float(gain[first:last].sum()) / whole if whole else math.nan

    return {
        "promoted": len(promoted),
        "false": sum(kind not in (GOOD, TURNING) for kind in kinds),
        "good": sum(one.kind in (GOOD, TURNING) for one in planted.values()),
        "captured_60": captured(0, min(60, len(gain))),
        "captured_at_60": captured(min(55, len(gain) - 5), min(60, len(gain))),
        "captured_at_90": captured(len(gain) - 5, len(gain)),
        "harm_hours": float(windows.max()),
        "budget_hours": definition.harm_hours,
        "fleet_hours": float(world.fleet.hours.sum()),
        "oracle_hours": float(oracle.sum() / len(oracle) / _HOUR),
        "days_to_promote": to_promote,
        "days_to_end_bad": ended_bad,
        "days_to_end_turned": turned,
        "events": state.events,
        "ended_good": sum(
            e.step == "end" and planted[f"autopilot_{e.trial}"].kind == GOOD for e in events
        ),
        "reasons": _counted([f"{e.step} {e.reason}" for e in events]),
    }


def _started(state: State, trial: str, events: list[Any]) -> float:
    return next((e.day for e in events if e.trial == trial and e.step == "start"), math.nan)


def _counted(values: list[str]) -> dict[str, int]:
    return {value: values.count(value) for value in sorted(set(values))}


def measure(
    fleets: int, *, looks_per_day: int = 1, seed: int = 1, **size: Any
) -> list[dict[str, Any]]:
    """Returns what the autopilot did with each of some simulated fleets, as `simulated` does."""
    return [
        simulated(np.random.default_rng([seed, number]), looks_per_day=looks_per_day, **size)
        for number in range(fleets)
    ]


NIGHTLY, HOURLY, NOTHING = KINDS = ("each night", "each hour", "no policy helps")
HEAD = ("figure", *KINDS)
_SHOWN: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "fleets": lambda rows: str(len(rows)),
    "policies that help": lambda rows: _sum(rows, "good"),
    "promotions": lambda rows: _sum(rows, "promoted"),
    "false promotions": lambda rows: _sum(rows, "false"),
    "gain on day 60, of an oracle's": lambda rows: _range(rows, "captured_at_60"),
    "gain on day 90": lambda rows: _range(rows, "captured_at_90"),
    "gain of days 1 to 60 together": lambda rows: _range(rows, "captured_60"),
    "most harm in 30 days, hours": lambda rows: (
        f"{max(row['harm_hours'] for row in rows):.0f} of {rows[0]['budget_hours']:.0f}"
    ),
    "days to promote": lambda rows: _days(rows, "days_to_promote"),
    "days to take a bad policy back": lambda rows: _days(rows, "days_to_end_bad"),
    "days to take back what turns bad": lambda rows: _days(rows, "days_to_end_turned"),
    "policies that help, taken back": lambda rows: _sum(rows, "ended_good"),
}


def table(figures: Mapping[str, list[dict[str, Any]]]) -> list[tuple[str, ...]]:
    """Returns the rows of a table with `HEAD`."""
    return [
        (what, *(shown(figures[kind]) if figures.get(kind) else "" for kind in KINDS))
        for what, shown in _SHOWN.items()
    ]


def _sum(rows: list[dict[str, Any]], key: str) -> str:
    return str(sum(row[key] for row in rows))


def _range(rows: list[dict[str, Any]], key: str) -> str:
    shares = sorted(100 * row[key] for row in rows if not math.isnan(row[key]))
    if not shares:
        return ""
    return f"{np.median(shares):.0f} % ({shares[0]:.0f} to {shares[-1]:.0f})"


def _days(rows: list[dict[str, Any]], key: str) -> str:
    days = [value for row in rows for value in row[key]]
    if not days:
        return ""
    low, middle, high = np.percentile(days, [10, 50, 90])
    return f"{middle:.0f} ({low:.0f} to {high:.0f}), {len(days)}"

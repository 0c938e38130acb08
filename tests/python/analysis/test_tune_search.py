"""A search without Spark: what it tries, how it ends, and how often it is taken in by noise."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from aqepilot.analysis.tune import search
from aqepilot.analysis.tune.evidence import Choice, Decided, Evidence, Measured, Proposal, Try
from aqepilot.analysis.tune.measure import Limits, Ran, Search
from aqepilot.errors import AqePilotError

ORDER = Choice(point="join_reorder", signatures=("a", "b", "c"), answers=([1, 0, 2], [2, 1, 0]))
NUMBER = Choice(point="shuffle_partitions", signatures=("s",), size_bytes=9, answers=(2, 4, 8))
START = Proposal(answers=(ORDER.decided([0, 2, 1]),), came_from="recipe learned")


class Simulated:
    """A query whose times are drawn: each answer makes it so many times longer."""

    def __init__(self, ratios: dict[str, float], noise: float, seed: int = 1) -> None:
        self.ratios, self.noise, self.drawn = ratios, noise, random.Random(seed)
        self.firsts: list[tuple[Decided, ...]] = []
        self.plain_runs = 0

    def ms(self, answers: Sequence[Decided]) -> float:
        factor = math.prod(self.ratios.get(one.text, 1.0) for one in answers)
        return 1000 * factor * math.exp(self.drawn.gauss(0, self.noise))

    def first(self, answers: Sequence[Decided], timeout_ms: float) -> Ran:
        self.firsts.append(tuple(answers))
        return self.within(answers, timeout_ms)

    def timed(
        self, answers: Sequence[Decided], timeout_ms: float | None, held_out: bool = False
    ) -> Ran:
        self.plain_runs += not answers
        return self.within(answers, timeout_ms)

    def within(self, answers: Sequence[Decided], timeout_ms: float | None) -> Ran:
        ms = self.ms(answers)
        is_over = timeout_ms is not None and ms > timeout_ms
        return Ran("timed_out", timeout_ms or ms) if is_over else Ran("ran", ms)


def searched(
    runner: Simulated,
    choices: Sequence[Choice] = (ORDER, NUMBER),
    tries: int = 15,
    seed: int = 1,
    begun: Evidence | None = None,
) -> Evidence:
    evidence = begun or Evidence(query="q", plain_ms=1000, choices=tuple(choices), starts=(START,))
    limits = Limits(tries, rounds=12)
    drawn = random.Random(seed)
    return Search(runner, search.bandit, limits, 0.03, drawn, lambda _: None).run(evidence)


def test_what_recipes_answered_comes_first_and_nothing_is_tried_twice() -> None:
    runner = Simulated({}, 0.01)
    evidence = searched(runner)
    assert runner.firsts[0] == START.answers
    keys = [one.proposal.key for one in evidence.tries]
    assert len(set(keys)) == len(keys) == 12  # the start, and 3 * 4 - 1 combinations


def test_a_good_answer_is_built_upon_and_measured_again() -> None:
    runner = Simulated({"[2, 1, 0]": 0.5, "4": 0.7}, 0.05)
    more = Choice(point="shuffle_partitions", signatures=("t",), answers=(2, 4, 8, 16, 32))
    evidence = searched(runner, (ORDER, NUMBER, more))
    assert evidence.winner is not None
    texts = sorted(one.text for one in evidence.tries[evidence.winner].proposal.answers)
    assert "[2, 1, 0]" in texts
    assert evidence.is_real
    assert evidence.fresh is not None
    assert evidence.fresh.log_ratio.upper < math.log(0.7)
    assert evidence.paid_after_runs is not None


def test_what_takes_longer_than_the_best_is_cancelled() -> None:
    evidence = searched(Simulated({"2": 20.0}, 0.01))
    assert {one.outcome for one in evidence.tries} == {"ran", "timed_out"}
    assert all(
        one.outcome == "timed_out"
        for one in evidence.tries
        if any(a.text == "2" for a in one.proposal.answers)
    )


def test_noise_makes_no_winner() -> None:
    real = [searched(Simulated({}, 0.2, seed), seed=seed).is_real for seed in range(60)]
    assert sum(real) <= 3


def test_a_search_goes_on_from_its_file(tmp_path: Path) -> None:
    whole = searched(Simulated({"4": 0.5}, 0.01), tries=6)
    part = whole.changed(tries=whole.tries[:3], winner=None, fresh=None, is_finished=False)
    file = tmp_path / "q.json"
    part.write(file)
    read = Evidence.read(file)
    assert read == part
    runner = Simulated({"4": 0.5}, 0.01)
    again = searched(runner, tries=6, begun=read)
    assert len(runner.firsts) == 3
    assert [one.proposal for one in again.tries] == [one.proposal for one in whole.tries]
    assert again.is_finished


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "q.json"
    file.write_text("{}")
    with pytest.raises(AqePilotError, match="no file of"):
        Evidence.read(file)


def test_other_data_has_to_be_faster_too() -> None:
    fast = Measured(pairs=((100.0, 50.0), (100.0, 51.0)) * 5)
    same = Measured(pairs=((100.0, 100.0), (100.0, 101.0)) * 5)
    assert Evidence(query="q", fresh=fast).is_real
    assert Evidence(query="q", fresh=fast, held_out=fast).is_real
    assert not Evidence(query="q", fresh=fast, held_out=same).is_real


def test_a_searcher_may_be_a_function_of_ones_own() -> None:
    assert search.named(f"{__name__}:nothing") is nothing
    with pytest.raises(AqePilotError, match="there is no searcher 'bandid'"):
        search.named("bandid")


def nothing(
    choices: Sequence[Choice], starts: Sequence[Proposal], tries: Sequence[Try], limit: int
) -> Proposal | None:
    return None

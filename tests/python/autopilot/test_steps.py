"""The steps of a trial: what begins, ramps, promotes and ends it, and what it never touches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tiers
from aqepilot.autopilot import learned
from aqepilot.autopilot.evidence import Shadow, TeamPolicy
from aqepilot.autopilot.live import settings
from aqepilot.autopilot.reasons import REASONS
from aqepilot.autopilot.state import State
from fleets import SKEW, Jobs, after, candidate, definition, in_experiment, promoted

pytestmark = tiers.on("4.3")


def test_a_candidate_is_first_in_shadow_and_then_at_the_ramp_s_first_share():
    _, state, trial = in_experiment()
    assert (trial.phase, trial.share) == ("experiment", 25.0)
    conf = settings(state, "daily.a")
    assert conf["spark.aqepilot.experiment.arms"] == f"spark:75,{trial.name}:25"
    assert conf[f"spark.aqepilot.policy.{trial.name}.when"] == "query.fingerprint = 'ab'"


def test_a_policy_in_shadow_mode_changes_nothing():
    jobs = Jobs()
    jobs.past("daily.a")
    state, _ = after(State(), jobs.evidence(0), [candidate()])
    conf = settings(state, "daily.a")
    name = state.open[0].name
    assert conf["spark.aqepilot.policies"] == name
    assert conf[f"spark.aqepilot.policy.{name}.mode"] == "shadow"
    assert "spark.aqepilot.experiment.arms" not in conf


@pytest.mark.parametrize(
    ("shadow", "reason"), [(Shadow(2, 0, 0), "SHADOW_SILENT"), (Shadow(2, 3, 1), "SHADOW_FAILED")]
)
def test_a_shadow_that_fails_or_says_nothing_never_decides(shadow, reason):
    jobs = Jobs()
    jobs.past("daily.a")
    state, _ = after(State(), jobs.evidence(0), [candidate()])
    _, steps = after(state, jobs.evidence(1, shadows={state.open[0].name: shadow}))
    assert steps == [("end", reason)]


def test_a_gain_is_promoted_and_keeps_a_hold_out():
    _, state, trial = promoted()
    assert (trial.phase, trial.share) == ("promoted", 90.0)
    arms = settings(state, "daily.a")["spark.aqepilot.experiment.arms"]
    assert arms == f"spark:10,{trial.name}:90"
    assert trial.effect == pytest.approx(np.log(0.5), abs=0.2)


def test_without_a_difference_nothing_is_promoted_and_the_job_gets_its_next_change():
    jobs, state, trial = in_experiment()
    jobs.drawn("daily.a", trial, 30, 1.0)
    other = candidate(text=SKEW.replace("'ab'", "'cd'"))
    state, steps = after(state, jobs.evidence(30), [candidate(), other])
    assert steps == [("end", "GAIN_SMALL")]
    state, steps = after(state, jobs.evidence(30), [candidate(), other], look="two")
    assert steps == [("propose", "CANDIDATE_NEW")]
    assert state.open[0].candidate == other


@pytest.mark.parametrize(
    ("effect", "failing", "reason"), [(1.6, False, "HARM_SHOWN"), (1.0, True, "FAILURES")]
)
def test_what_hurts_is_taken_back(effect, failing, reason):
    jobs, state, trial = in_experiment()
    jobs.drawn("daily.a", trial, 24, effect, failing=failing)
    state, steps = after(state, jobs.evidence(24))
    assert steps in ([("end", reason)], [("end", "HARM_SHOWN")])
    assert settings(state, "daily.a") == {}


def test_a_gain_that_is_lost_is_taken_back():
    jobs, state, trial = promoted()
    jobs.drawn("daily.a", trial, 20, 0.5, first=30)
    state, steps = after(state, jobs.evidence(50), look="two")
    assert steps == []
    jobs.drawn("daily.a", trial, 24, 2.0, first=50)
    _, steps = after(state, jobs.evidence(74), look="three")
    assert steps == [("end", "GAIN_LOST")]


@pytest.mark.parametrize(
    ("before", "after_it", "is_doubted"), [(0.5, 0.65, True), (0.1, 0.13, False)]
)
def test_a_gain_is_doubted_only_where_a_good_part_of_it_may_be_lost(before, after_it, is_doubted):
    """Runs that take a third longer leave most of what a policy gains that saves nine tenths."""
    jobs, state, trial = promoted(before)
    jobs.drawn("daily.a", trial, 20, before, first=30)
    jobs.drawn("daily.a", trial, 8, after_it, first=50)
    _, steps = after(state, jobs.evidence(58), look="two")
    assert steps == [("share", "GAIN_DOUBTED")] * is_doubted


def test_a_team_s_policy_at_the_point_ends_the_trial_and_allows_no_other():
    jobs, state, _ = in_experiment()
    teams = {"daily.a": (TeamPolicy("sales", ("skew_join",)),)}
    state, steps = after(state, jobs.evidence(1, teams=teams))
    assert steps == [("end", "TEAM_POLICY")]
    other = candidate(text=SKEW.replace("'ab'", "'cd'"))
    _, steps = after(state, jobs.evidence(1, teams=teams), [other], look="two")
    assert steps == []


def test_a_team_s_policy_at_another_point_is_asked_first_in_both_arms():
    jobs = Jobs()
    jobs.past("daily.a")
    teams = {"daily.a": (TeamPolicy("sales", ("join_selection",)),)}
    state, _ = after(State(), jobs.evidence(0, teams=teams), [candidate()])
    name = state.open[0].name
    shadows = {name: Shadow(1, 1, 0)}
    state, _ = after(state, jobs.evidence(0, teams=teams, shadows=shadows), look="two")
    arms = settings(state, "daily.a")["spark.aqepilot.experiment.arms"]
    assert arms == f"sales:75,sales+{name}:25"


def test_no_experiment_begins_that_the_budget_of_harm_does_not_cover():
    jobs = Jobs()
    jobs.past("daily.a", ms=3_600_000.0)
    state, _ = after(State(), jobs.evidence(0), [candidate()])
    shadows = {state.open[0].name: Shadow(1, 1, 0)}
    small = definition(harm_hours=0.1)
    _, steps = after(state, jobs.evidence(0, shadows=shadows), may=small)
    assert steps == []
    _, steps = after(state, jobs.evidence(0, shadows=shadows), may=definition(harm_hours=10))
    assert steps == [("start", "SHADOW_WELL")]


def test_a_job_or_a_point_that_is_not_allowed_is_never_touched():
    jobs = Jobs()
    jobs.past("daily.a")
    others = [candidate(job="<b>nightly</b>"), candidate(job="nightly.a")]
    _, steps = after(State(), jobs.evidence(0), others)
    assert steps == []
    _, steps = after(State(), jobs.evidence(0), [candidate()], definition(points=("join_reorder",)))
    assert steps == []


def test_a_recipe_that_helped_is_asked_first():
    _, state, _ = promoted()
    rows = learned.table(state.trials.values())
    assert [(r.shape, r.recipe, r.tries, r.kept) for r in rows] == [("hot_key", "hot_keys", 1, 1)]
    unknown = candidate(job="daily.b", recipe="other", stake_ms=1200.0)
    known = candidate(job="daily.c", stake_ms=1000.0)
    assert learned.order([unknown, known], rows) == [known, unknown]
    assert learned.order([unknown, known], []) == [unknown, known]


def test_every_reason_of_a_step_has_a_sentence():
    source = (Path(learned.__file__).parent / "steps.py").read_text("utf-8")
    used = {word for word in source.split('"') if word.isupper() and "_" in word}
    assert used <= set(REASONS)
    assert {"GAIN_SHOWN", "HARM_SHOWN", "BUDGET_SPENT"} <= used

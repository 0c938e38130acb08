"""The autopilot: what it may do, its steps, and that nothing is lost or done twice by a kill."""

from __future__ import annotations

import json
import random
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pytest

import tiers
from aqepilot import control
from aqepilot.autopilot import branch, learned, sentences, shown
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Shadow, TeamPolicy
from aqepilot.autopilot.journal import JOURNAL, LIVE
from aqepilot.autopilot.live import live, settings
from aqepilot.autopilot.reasons import REASONS
from aqepilot.autopilot.state import State
from aqepilot.autopilot.steps import Steps
from aqepilot.errors import AqePilotError
from aqepilot.experiment.definition import Definition as Experiment
from aqepilot.policies import Policy
from bench import autopilot as fleet
from fleets import AT, SKEW, Jobs, candidate, definition, pilot

pytestmark = tiers.on("4.3")

DAYS = 60


def after(state, evidence, candidates=(), may=None, look="one"):
    events = Steps(may or definition(), state, evidence, look, AT).decide(candidates)
    return state.after(events), [(e.step, e.reason) for e in events if e.trial]


def in_experiment(jobs=None, share=25.0):
    """A state with a trial whose experiment began on day 0."""
    jobs = jobs or Jobs()
    jobs.past("daily.a")
    state, _ = after(State(), jobs.evidence(0), [candidate()])
    (trial,) = state.open
    shadows = {trial.name: Shadow(1, 3, 0)}
    state, steps = after(state, jobs.evidence(0, shadows=shadows))
    assert steps == [("start", "SHADOW_WELL")]
    (trial,) = state.open
    return jobs, state, trial


def promoted(effect=0.5):
    jobs, state, trial = in_experiment()
    jobs.drawn("daily.a", trial, 30, effect)
    state, steps = after(state, jobs.evidence(30))
    assert steps == [("promote", "GAIN_SHOWN")]
    return jobs, state, state.open[0]


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ('[autopilot]\nstate = "a"\njobs = ["x"]\nramps = [5]\n', ":4:1", "ramp"),
        ('[autopilot]\nstate = "a"\njobs = ["x"]\ndeliver = "Live"\n', ":4:1", "live"),
        ('[autopilot]\nstate = "a"\njobs = ["x"]\ndeliver = "live"\n', ":4:1", "control"),
        ('[autopilot]\nstate = "a"\njobs = ["x"]\nramp = [50, 10]\n', ":4:1", "rise"),
        ('[autopilot]\nstate = "a"\njobs = ["x"]\npoints = ["skew"]\n', ":4:1", "skew_join"),
        ('[autopilot]\nstate = "a"\njobs = ["x"]\nrecipes = ["hot_key"]\n', ":4:1", "hot_keys"),
        ('[autopilot]\nstate = "a"\n', ":1:1", "jobs is missing"),
        ('jobs = 1\n[autopilot]\nstate = "a"\n', ":1:1", "stands beside"),
        ("x = \n", ":1:5", "TOML"),
    ],
)
def test_a_wrong_definition_is_refused_with_its_place(text, place, says):
    with pytest.raises(AqePilotError) as refused:
        Definition.from_toml(text)
    message = str(refused.value)
    assert f"autopilot.toml{place}" in message
    assert says in message


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


def test_a_look_is_decided_once(tmp_path):
    jobs = Jobs()
    jobs.past("daily.a")
    autopilot = pilot(tmp_path)
    known = lambda _: (jobs.evidence(0), [candidate()])  # noqa: E731
    assert [e.step for e in autopilot.look("one", known)] == ["propose", "decided"]
    before = (tmp_path / "state" / JOURNAL).read_text()
    assert pilot(tmp_path).look("one", known) == []
    assert (tmp_path / "state" / JOURNAL).read_text() == before


def test_two_autopilots_at_once_decide_a_look_once(tmp_path):
    jobs = Jobs()
    jobs.past("daily.a")

    def known(_):
        # The other one is faster.
        pilot(tmp_path).look("one", lambda _: (jobs.evidence(0), [candidate()]))
        return jobs.evidence(0), [candidate()]

    assert pilot(tmp_path).look("one", known) == []
    assert len(pilot(tmp_path).journal.read().trials) == 1


def test_a_person_holds_pins_and_undoes_a_trial(tmp_path):
    jobs = Jobs()
    jobs.past("daily.a")
    autopilot = pilot(tmp_path)
    autopilot.look("one", lambda _: (jobs.evidence(0), [candidate()]))
    (trial,) = autopilot.journal.read().open
    autopilot.act("hold", trial.id[:4], reason="later", by="me")
    shadows = {trial.name: Shadow(1, 1, 0)}
    autopilot.look("two", lambda _: (jobs.evidence(1, shadows=shadows), []))
    assert autopilot.journal.read().open[0].phase == "shadow"
    autopilot.act("pin", trial.id)
    conf = shown.settings(autopilot.definition, "daily.a")
    assert conf["spark.aqepilot.policies"] == trial.name
    assert conf[f"spark.aqepilot.policy.{trial.name}.mode"] == "enforce"
    autopilot.act("undo", trial.id, reason="no")
    assert shown.settings(autopilot.definition, "daily.a") == {}
    with pytest.raises(AqePilotError, match="is over: UNDONE"):
        autopilot.act("hold", trial.id)
    with pytest.raises(AqePilotError, match="there is no trial"):
        autopilot.act("hold", "zzz")


def test_what_is_taken_back_is_off_in_the_control_file_too(tmp_path):
    jobs, autopilot = Jobs(), pilot(tmp_path)
    jobs.past("daily.a")
    now = datetime.fromtimestamp(0, timezone.utc)
    autopilot.look("one", lambda _: (jobs.evidence(0), [candidate()]), now=now)
    (trial,) = autopilot.journal.read().open
    shadows = {trial.name: Shadow(1, 1, 0)}
    autopilot.look("two", lambda _: (jobs.evidence(0, shadows=shadows), []), now=now)
    autopilot.act("undo", trial.id, reason="slow")
    (rule,) = control.read(str(tmp_path / "control.json")).rules
    assert rule.selectors == {"policy": trial.name, "job": "daily.a"}
    assert rule.mode == "off"
    assert "UNDONE" in rule.reason


def test_files_change_nothing_live_and_are_policies_and_experiments(tmp_path):
    jobs, autopilot = Jobs(), pilot(tmp_path, deliver="files", control=None)
    jobs.past("daily.a")
    hostile = "daily.'<script>|`x`\u2028\n'"
    jobs.past(hostile)
    both = [candidate(), candidate(job=hostile)]
    autopilot.look("one", lambda _: (jobs.evidence(0), both))
    trials = autopilot.journal.read().open
    assert len(trials) == 2
    shadows = {trial.name: Shadow(1, 1, 0) for trial in trials}
    autopilot.look("two", lambda _: (jobs.evidence(0, shadows=shadows), []))
    assert json.loads((tmp_path / "state" / LIVE).read_text())["jobs"] == {}
    assert not (tmp_path / "control.json").exists()
    folder = tmp_path / "branch"
    for trial in trials:
        policy = Policy.from_file(folder / "policies" / f"{trial.name}.toml")
        drawn = Experiment.from_file(folder / "experiments" / f"{trial.name}.toml")
        assert drawn.of_arms([policy], folder / "experiments" / f"{trial.name}.toml") == []
        page = (folder / "evidence" / f"{trial.name}.md").read_text("utf-8")
        assert "<script>" not in page
    assert "<script>" not in (folder / branch.MESSAGE).read_text("utf-8")
    mine = folder / "policies" / "own.toml"
    mine.write_text("mine")
    autopilot.act("skip", trials[0].id)
    assert mine.exists()
    assert not (folder / "policies" / f"{trials[0].name}.toml").exists()


def test_a_broken_journal_is_refused_with_its_line(tmp_path):
    (tmp_path / "state").mkdir()
    autopilot = pilot(tmp_path)
    (tmp_path / "state" / JOURNAL).write_text('{"look": "x"}\n')
    with pytest.raises(AqePilotError, match=r"journal.jsonl:1: this line is no event"):
        autopilot.journal.read()


def test_the_status_has_a_row_for_each_trial():
    jobs, state, trial = in_experiment()
    jobs.drawn("daily.a", trial, 4, 0.5)
    steps = Steps(definition(), state, jobs.evidence(4), "x", AT)
    state = state.after([steps.decide([])[-1]])
    (row,) = sentences.data(state.measured(steps.figures()), definition())
    assert (row["state"], row["share"], row["days_left"]) == ("experiment", 25.0, 41.0)
    assert row["saved_ms"] > 0
    assert row["effect_text"].startswith("-")


def test_the_report_and_the_assistant_show_what_is_tried_without_obeying_its_names(tmp_path):
    from aqepilot.analysis.report import page
    from aqepilot.assistant.answers import Answers
    from aqepilot.assistant.reading import Reading
    from aqepilot.assistant.tools import Tools

    jobs, autopilot = Jobs(), pilot(tmp_path)
    hostile = "daily.<script>alert(1)</script>"
    jobs.past(hostile)
    autopilot.look("one", lambda _: (jobs.evidence(0), [candidate(job=hostile)]))
    tried = shown.for_report(autopilot.definition)
    made = page.environment().get_template("autopilot.html.jinja").render(autopilot=tried)
    assert "<script>" not in made
    assert "daily.&lt;script&gt;" in made
    file = tmp_path / "autopilot.toml"
    state = json.dumps(str(tmp_path / "state"))
    file.write_text(f'[autopilot]\nstate = {state}\njobs = ["daily.*"]\n')
    with Reading([], lambda: None, None, file) as reading:
        tools = {tool.__name__: tool for tool in Tools(reading, Answers()).reads()}
        answer = tools["autopilot"]()
    assert json.loads(answer)
    assert "CANDIDATE_NEW" in answer


def test_the_commands_do_what_they_say(tmp_path):
    from click.testing import CliRunner

    from aqepilot.cli import main

    jobs, autopilot = Jobs(), pilot(tmp_path)
    jobs.past("daily.a")
    autopilot.look("one", lambda _: (jobs.evidence(0), [candidate()]))
    (trial,) = autopilot.journal.read().open
    file = tmp_path / "autopilot.toml"
    lines = [f"state = {json.dumps(str(tmp_path / 'state'))}", 'jobs = ["daily.*"]']
    lines += ['deliver = "live"', f"control = {json.dumps(str(tmp_path / 'control.json'))}"]
    file.write_text("\n".join(["[autopilot]", *lines, ""]))

    def ran(*words):
        done = CliRunner().invoke(main, ["autopilot", words[0], "--file", str(file), *words[1:]])
        assert done.exit_code == 0, done.output
        return done.output

    assert "shadow" in ran("status")
    assert json.loads(ran("status", "--json"))[0]["trial"] == trial.id
    assert f"spark.aqepilot.policies={trial.name}" in ran("conf", "--job", "daily.a")
    assert ran("conf", "--job", "daily.b").strip() == ""
    assert "HELD" in ran("hold", trial.id, "--reason", "later")
    assert "RELEASED" in ran("release", trial.id)
    assert "SKIPPED" in ran("skip", trial.id)
    steps = [event["step"] for event in json.loads(ran("log", "--json"))]
    assert steps == ["propose", "hold", "release", "end"]
    assert ran("status", "--learned", "--json").strip() == "[]"


class KilledError(BaseException):
    """The process ends here."""


def test_a_kill_anywhere_loses_nothing_and_does_nothing_twice(tmp_path, monkeypatch):
    """Each kill is before or after a file is replaced, and all that is written is replaced."""
    quiet = _flown(tmp_path / "quiet", lambda look: look())
    draws = random.Random(1)
    kills = []
    replace = Path.replace
    fuse = [0, False]

    def replaced(self, target):
        fuse[0] -= 1
        if fuse[0] == 0 and not fuse[1]:
            raise KilledError
        done = replace(self, target)
        if fuse[0] == 0:
            raise KilledError
        return done

    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr("os.fsync", lambda _: None)
    folder = tmp_path / "killed"

    def until_it_is_done(look):
        while True:
            fuse[:] = [draws.randint(1, 3), draws.random() < 0.5]
            try:
                return look()
            except KilledError:
                kills.append(fuse[:])
                _is_recorded(folder)

    killed = _flown(folder, until_it_is_done)
    assert len(kills) >= 100
    assert [_step(e) for e in killed.events()] == [_step(e) for e in quiet.events()]
    decided = killed.read().decided
    assert len(decided) == len(set(decided))


def _step(event):
    return event.look, event.step, event.reason, event.trial, event.share


def _is_recorded(folder):
    """All that is in force at this moment has its record."""
    state = pilot(folder).journal.read()
    text = (folder / "state" / LIVE).read_text() if (folder / "state" / LIVE).exists() else "{}"
    recorded = {f"autopilot_{trial}" for trial in state.trials}
    for conf in json.loads(text).get("jobs", {}).values():
        policies = {key.split(".")[3] for key in conf if ".policy." in key}
        assert policies <= recorded
    for rule in control.read(str(folder / "control.json")).rules:
        assert state.trials[rule.policy.removeprefix("autopilot_")].is_over


def _flown(folder, attempt):
    """A small fleet for some days; each look is taken by a new autopilot."""
    (folder / "state").mkdir(parents=True)
    control.lift(str(folder / "control.json"))
    jobs = fleet.Fleet(np.random.default_rng(5), 12, 1)
    world = fleet.World(jobs, DAYS, pilot(folder))
    for at in world.looks(DAYS, 1):
        attempt(lambda at=at: fleet.look(pilot(folder, experiments=20), world, at))
        world.read_settings()
    journal = pilot(folder).journal
    state = journal.read()
    assert json.loads(journal.text(LIVE)) == live(state).model_dump()
    return journal

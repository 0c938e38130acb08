"""A look of the autopilot and what a person does about its trials, to its files and its pages."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

import tiers
from aqepilot import control
from aqepilot.autopilot import branch, sentences, shown
from aqepilot.autopilot.evidence import Shadow
from aqepilot.autopilot.journal import JOURNAL, LIVE
from aqepilot.autopilot.steps import Steps
from aqepilot.errors import AqePilotError
from aqepilot.experiment.definition import Definition as Experiment
from aqepilot.policies import Policy
from fleets import AT, Jobs, candidate, definition, in_experiment, pilot

pytestmark = tiers.on("4.3")


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

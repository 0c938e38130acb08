"""An experiment as a file: the settings that it becomes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from aqepilot import catalog
from aqepilot.analysis.experiment.metrics import METRICS
from aqepilot.cli import main
from aqepilot.errors import AqePilotError
from aqepilot.experiment.definition import KEY, Definition, of_files
from aqepilot.policies import Policy

FULL = """
[experiment]
name = "skew_v2"
arms = { sales = 90, "sales+skew" = 10 }
unit = "query_run"
when = "query.job LIKE 'daily.%'"
salt = "2"
start = 2026-12-01
end = 2027-01-01T06:00:00+01:00
metric = "wall_ms"
guardrails = "failed_queries:3"
"""


def test_a_file_becomes_settings() -> None:
    assert Definition.from_toml(FULL).to_conf() == {
        f"{KEY}name": "skew_v2",
        f"{KEY}arms": "sales:90,sales+skew:10",
        f"{KEY}unit": "query_run",
        f"{KEY}when": "query.job LIKE 'daily.%'",
        f"{KEY}salt": "2",
        f"{KEY}start": "2026-12-01T00:00:00+00:00",
        f"{KEY}end": "2027-01-01T06:00:00+01:00",
        f"{KEY}metric": "wall_ms",
        f"{KEY}guardrails": "failed_queries:3",
    }


def test_its_keys_are_those_of_the_settings() -> None:
    keys = {s.key.removeprefix(KEY) for s in catalog.settings() if s.key.startswith(KEY)}
    assert keys == set(Definition.model_fields)
    types = {s.key.removeprefix(KEY): s.type for s in catalog.settings()}
    assert types["metric"].split(" | ") == list(METRICS)
    assert types["unit"].split(" | ") == list(catalog.experiment_units())


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('arms = "a:50,b:60"\nname = "x"', 2, "arms: the weights are 110 percent together"),
        ('name = "x"', 1, 'arms is missing; add arms = "..."'),
        ('name = "x y"\narms = "a:50,b:50"', 2, "name: 'x y' is no name"),
        ('name = "x"\narms = "a:50,b:50"\nunits = "session"', 4, "Did you mean unit?"),
        ('name = "x"\narms = "a:50,b:50"\nunit = "job"', 4, "unit 'job' is not one of job_run"),
        ('name = "x"\narms = "a:50,b:50"\nstart = "soon"', 4, "start: 'soon' is not a time"),
        ('name = "x"\narms = "a:50,b:50"\nend = 2026-12-01T06:00:00', 4, "has no zone"),
        ('name = "x"\narms = "a:50,b:50"\nguardrails = "time:3"', 4, "is no guard rail"),
        ('name = "x"\narms = "a:50,b:50"\nguardrails = "driver_time:0.00"', 4, "is no guard rail"),
        ('name = "x"\narms = "a:50,b:50"\nwhen = " "', 4, "when: it is empty"),
        (
            'name = "x"\narms = "a:50,b:50"\nwhen = "Query.`fingerprint` = \'f\'"',
            4,
            "query.fingerprint is not known when an application starts",
        ),
        (
            'name = "x"\narms = "a:50,b:50"\nstart = 2026-12-01\nend = 2026-12-01',
            1,
            "end is not after start",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, line: int, says: str) -> None:
    with pytest.raises(AqePilotError) as caught:
        Definition.from_toml(f"[experiment]\n{text}", "e.toml")
    (problem,) = caught.value.problems
    assert says in str(problem)
    assert problem.where == f"e.toml:{line}:1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[experiment", "this is not TOML"),
        ("[other]\nname = 1", "other stands beside a table [experiment]"),
        ('[experiment]\nname = "x"\n[sales]\n', "sales stands beside a table [experiment]"),
        ("", "there is no table [experiment]"),
    ],
)
def test_a_file_that_is_none_is_told(text: str, says: str) -> None:
    with pytest.raises(AqePilotError) as caught:
        Definition.from_toml(text, "e.toml")
    assert says in str(caught.value.problems[0])


def conf(folder: Path, *more: str) -> tuple[int, str, str]:
    paths = {"e.toml": '[experiment]\nname = "x"\narms = "spark:50,sales:50"\n'}
    paths["sales.toml"] = "name = 'sales'\njoin_selection = 'null'\n"
    for name, text in paths.items():
        (folder / name).write_text(text)
    words = ["conf", *(str(folder / name) for name in more), "--format", "json"]
    done = CliRunner().invoke(main, [*words, "--jar-uri", "s3://j/a.jar"])
    return done.exit_code, done.stdout, done.stderr


def test_conf_prints_an_experiment_with_its_policies(tmp_path: Path) -> None:
    code, out, _ = conf(tmp_path, "e.toml", "sales.toml")
    assert code == 0
    values = json.loads(out)
    assert values[f"{KEY}arms"] == "spark:50,sales:50"
    assert values["spark.aqepilot.policy.sales.join_selection"] == "null"
    assert "spark.aqepilot.policies" not in values


def test_conf_refuses_arms_of_policies_that_are_not_given(tmp_path: Path) -> None:
    code, out, err = conf(tmp_path, "e.toml")
    assert (code, out) == (1, "")
    assert "an arm names the policy 'sales', which none of the files defines" in err


def test_conf_refuses_two_experiments(tmp_path: Path) -> None:
    code, _, err = conf(tmp_path, "e.toml", "sales.toml", "e.toml")
    assert code == 1
    assert "an application has one at a time" in err


@pytest.mark.parametrize(
    "more",
    [
        "when = \"query.job = 'query.fingerprint' -- query.fingerprint\"",
        'when = "query.fingerprint = \'f\'"\nunit = "query_run"',
        'guardrails = "driver_time:0.50"',
        'guardrails = "driver_time:10,failed_queries:1"',
    ],
)
def test_what_the_driver_takes_is_taken(more: str) -> None:
    Definition.from_toml(f'[experiment]\nname = "x"\narms = "a:50,b:50"\n{more}')


@pytest.mark.parametrize("mode", ["off", "shadow"])
def test_an_arm_of_a_policy_that_decides_nothing_is_told(mode: str, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text('[experiment]\nname = "x"\narms = "spark:50,sales:50"\n')
    sales = Policy(name="sales", mode=mode, join_selection="null")
    with pytest.raises(AqePilotError) as caught:
        of_files([tmp_path / "e.toml"], [sales])
    (problem,) = caught.value.problems
    assert problem.where == f"{tmp_path / 'e.toml'}:3:1"
    assert f"the policy 'sales', whose mode is {mode}: it would decide nothing" in problem.message
    assert of_files([tmp_path / "e.toml"], [Policy(name="sales", join_selection="null")])

"""What `aqepilot init` writes is a folder that a team can work with."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import tiers
from aqepilot import Policy, control, policy_folder, recipes
from aqepilot.cli import main
from aqepilot.submit import conf
from aqepilot.submit.jars import coordinates, find

pytestmark = tiers.on("4.3")


@pytest.fixture
def init(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, ["init", "team", *words])


@pytest.fixture
def sh(tmp_path):
    """Runs a script of the folder, with commands that start a Spark replaced by their words."""
    stub = tmp_path / "bin" / "aqepilot"
    stub.parent.mkdir()
    stub.write_text(
        '#!/bin/sh\ncase "$1" in check|replay) echo "$@" ;; '
        f'*) exec "{sys.executable}" -m aqepilot "$@" ;; esac\n'
    )
    stub.chmod(0o755)

    def run(script, **env):
        return subprocess.run(
            ["sh", f"team/{script}"],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{stub.parent}:{os.environ['PATH']}", **env},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_begins_in_shadow_mode(tmp_path, name):
    path = tmp_path / "a.toml"
    path.write_text(policy_folder.in_shadow(recipes.text(name)))
    path_as_it_is = tmp_path / "b.toml"
    path_as_it_is.write_text(recipes.text(name))
    shadow, plain = Policy.from_file(path), Policy.from_file(path_as_it_is)
    assert shadow.mode == "shadow"
    assert shadow.points == plain.points


def test_a_team_begins_with_balanced_and_a_control_file_without_a_rule(init, tmp_path):
    done = init()
    assert done.exit_code == 0
    listed = {line.removeprefix("team/") for line in done.stdout.splitlines()}
    assert listed == {"policies/balanced.toml", "conf.sh", "check.sh", "README.md", "control.json"}
    assert control.read(str(tmp_path / "team" / "control.json")).rules == []


def test_the_settings_are_those_of_the_policies_with_jar_and_control_file(init, sh, tmp_path):
    init("--recipe", "hot_keys", "--recipe", "compact_files")
    assert sh("conf.sh").returncode == 0
    values = json.loads((tmp_path / "team/conf/spark.json").read_text())
    lines = (tmp_path / "team/conf/spark-defaults.conf").read_text()
    assert conf.parse_defaults(lines) == {k: v.strip() for k, v in values.items()}
    assert values["spark.aqepilot.policies"] == "compact_files,hot_keys"
    assert values["spark.aqepilot.policy.hot_keys.mode"] == "shadow"
    assert values["spark.jars.packages"] == coordinates(find())
    assert values["spark.aqepilot.control"] == (tmp_path / "team/control.json").as_uri()


def test_the_check_asks_for_settings_of_the_policies_and_replays_logs(init, sh, tmp_path):
    init("--recipe", "hot_keys", "--control", "s3a://etc/c.json", "--jar-uri", "s3a://j/a.jar")
    done = sh("check.sh")
    assert done.returncode == 1
    assert "conf/spark-defaults.conf is not of these policies: run conf.sh" in done.stderr
    sh("conf.sh")
    done = sh("check.sh")
    assert (done.returncode, done.stdout) == (0, "check policies/hot_keys.toml\n")
    done = sh("check.sh", EVENT_LOGS="my logs")
    assert "replay --log my logs --policy policies/hot_keys.toml" in done.stdout
    assert "s3a://j/a.jar" in (tmp_path / "team/conf/spark.json").read_text()
    assert not (tmp_path / "team/control.json").exists()


def test_what_is_there_stays_and_an_unknown_recipe_writes_nothing(init, tmp_path):
    assert init("--recipe", "hot_kies").exit_code == 1
    assert not (tmp_path / "team").exists()
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "README.md").write_text("ours")
    done = init()
    assert done.exit_code == 1
    assert "README.md: there already, and nothing was written" in done.stderr
    assert [p.name for p in (tmp_path / "team").iterdir()] == ["README.md"]
    assert (tmp_path / "team" / "README.md").read_text() == "ours"

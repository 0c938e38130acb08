"""The faults that `make mutants` plants fit the sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from aqepilot.toml import tomllib
from places import ROOT

MUTANTS = sorted((ROOT / "tests/mutants").glob("*.toml"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda file: file.stem)
def test_what_a_mutant_replaces_stands_in_its_file_once(mutant: Path) -> None:
    for edit in tomllib.loads(mutant.read_text("utf-8"))["edit"]:
        assert (ROOT / edit["file"]).read_text("utf-8").count(edit["old"]) == 1
        assert edit["new"] != edit["old"]

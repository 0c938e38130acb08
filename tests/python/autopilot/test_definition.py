"""What the autopilot may do is read from a file, and refused with its place where it is wrong."""

from __future__ import annotations

import pytest

import tiers
from aqepilot.autopilot.definition import Definition
from aqepilot.errors import AqePilotError

pytestmark = tiers.on("4.3")


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

"""The package does no work at import, and has what it says it has."""

import subprocess
import sys

import pytest

import aqepilot


def test_import_loads_no_dependency():
    script = (
        "import sys, aqepilot; "
        "print({'pyspark', 'pydantic', 'click', 'rich', 'json'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() in ("set()", "{'json'}")


def test_every_public_name_is_there_whatever_was_imported_before():
    import aqepilot.analysis.explanation
    import aqepilot.cli

    for name in aqepilot.__all__:
        assert getattr(aqepilot, name) is not None
    assert callable(aqepilot.explain)
    assert set(aqepilot.__all__) <= set(dir(aqepilot))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(aqepilot, "nothing")


@pytest.mark.parametrize(
    ("pyspark", "says"),
    [
        ("None", "error: this needs pyspark in this Python"),
        ("ModuleType('pyspark')", "error: this Python has pyspark's client alone"),
    ],
)
def test_without_a_spark_of_its_own_a_python_says_what_to_install(tmp_path, pyspark, says):
    """pyspark-client has sessions of Spark Connect, and no SparkContext."""
    (tmp_path / "a.toml").write_text("name = 'a'\nskew_join = 'null'\n")
    script = f"""
import importlib.machinery, sys
from types import ModuleType
from aqepilot.cli import main

here = sys.modules["pyspark"] = {pyspark}
if here:
    here.__spec__ = importlib.machinery.ModuleSpec("pyspark", None)
main(["check", sys.argv[1]])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(says)
    assert "pip install 'pyspark==" in done.stderr
    assert "Traceback" not in done.stderr

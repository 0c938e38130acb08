"""The package does no work at import, and has what it says it has."""

import subprocess
import sys

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
    import aqepilot.cli
    import aqepilot.explanation

    for name in aqepilot.__all__:
        assert getattr(aqepilot, name) is not None
    assert callable(aqepilot.explain)
    assert set(aqepilot.__all__) <= set(dir(aqepilot))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(aqepilot, "nothing")

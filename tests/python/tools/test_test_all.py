"""`make test`: parts side by side, what they printed, and what is told of their tests."""

import os
import re
import subprocess
import sys

import pytest

import places
import tiers

pytestmark = tiers.on("3.5")

TOOL = places.ROOT / "tools" / "test_all.py"
# `smoke-b` ends when `smoke-a` runs beside it, and the other way round. sbt's parts leave a file
# while they run. What is busy ends when ScalaTest runs beside it.
MAKEFILE = """
SBT = test ! -e sbt && touch sbt && sleep 0.5 && rm sbt
env wheel install:
	@echo this is $@
jars test-classes:
	@$(SBT)
lint-scala:
	@echo this is $@ && $(SBT) && exit $(LINT)
smoke-a smoke-b:
	@touch $@.runs; for i in $$(seq 100); do \
	test -e smoke-a.runs -a -e smoke-b.runs && exit; sleep 0.1; done; exit 1
busy-%:
	@for i in $$(seq 100); do test -e jvm-ran && exit; sleep 0.1; done; exit 1
test-jvm-%:
	@test ! -e jvm && touch jvm jvm-ran && sleep 0.5 && rm jvm
	@printf '%s' '$(CASES)' > target/junit/$@.xml
test-python:
	@printf '%s' '$(CASES)' > target/junit/$@.xml; exit $(TESTS)
test-python-slow:
	@ended() { printf '%s' '$(CASES)' > target/junit/$@.xml; exit 1; }; \
	trap ended INT; sleep 60 & wait
"""
CASES = """<testsuites><testsuite>
<testcase classname="tests.python.test_x" name="test_good" time="1.5"/>
<testcase classname="tests.python.test_x" name="test_skipped" time="0"><skipped/></testcase>
<testcase classname="tests.python.test_y" name="test_bad" time="70.25">
<failure message="assert 1 == 2">self = 1&#10;test_y.py:7: AssertionError</failure></testcase>
<testcase classname="tests.python.test_y" name="test_bad" time="0.75"><error/></testcase>
</testsuite></testsuites>""".replace("\n", "")
FAILURE = re.compile("<failure.*</failure>|<error/>")


@pytest.fixture
def run(tmp_path):
    (tmp_path / "Makefile").write_text(MAKEFILE)

    def go(*parts, **variables):
        words = {"CASES": FAILURE.sub("", CASES)} | variables
        environment = {"LINT": "0", "TESTS": "0"} | words
        return subprocess.run(
            [sys.executable, str(TOOL), *parts],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return go


def test_parts_run_side_by_side_and_their_tests_are_counted(run):
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one core runs one part at a time")
    done = run("env", "jars", "wheel", "install", "smoke-a", "smoke-b", "test-python")
    assert done.returncode == 0, done.stdout + done.stderr
    # Two tests of one file, one of them skipped; a part without tests counts as one.
    assert done.stdout.splitlines()[-1] == "8 passed, 0 failed"
    assert re.search(r"==== make install: passed in \d+ s", done.stdout)
    assert "Failed tests" not in done.stdout
    assert "The end of" not in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["71.0", "1", "test-python:", "test_y"] in lines
    assert ["71.0", "test-python:", "test_y:", "test_bad"] in lines


def test_one_scalatest_runs_beside_as_many_others_as_there_are_cores(run):
    cores = os.cpu_count() or 1
    if os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") < (cores + 1) * 6 << 30:
        pytest.skip("there is no memory for one more part")
    done = run(*(f"busy-{n}" for n in range(cores)), "test-jvm-a", "test-jvm-b")
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_sbt_runs_at_a_time(run):
    done = run("env", "jars", "lint-scala", "test-classes")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_failed_test_and_a_failed_part_without_tests_are_told(run):
    done = run(
        "env",
        "jars",
        "wheel",
        "install",
        "test-python",
        "lint-scala",
        TESTS="1",
        LINT="1",
        CASES=CASES,
    )
    assert done.returncode == 1
    (failures,) = re.findall(r"(?m)^  test-python: test_y: test_bad\n((?: {6}.*\n)*)", done.stdout)
    assert failures.split("\n") == ["      assert 1 == 2", "      test_y.py:7: AssertionError", ""]
    # Once where the part ended, and once more at the end, where somebody looks.
    assert done.stdout.count("this is lint-scala\n") == 2
    assert done.stdout.rindex("this is lint-scala") > done.stdout.index("Slowest tests")
    assert "this is install\n" not in done.stdout
    assert "make test failed in: test-python, lint-scala." in done.stdout
    assert done.stdout.splitlines()[-1] == "5 passed, 2 failed"


def test_what_needs_a_failed_part_is_not_run(run, tmp_path):
    (tmp_path / "Makefile").write_text("env:\n\texit 1\n")
    done = run("env", "jars", "wheel", "install", "smoke-a")
    assert done.returncode == 1
    assert done.stdout.count("not run") == 4
    assert done.stdout.splitlines()[-1] == "0 passed, 5 failed"


def test_a_part_that_died_while_it_wrote_its_file_has_failed(run):
    done = run("test-python", TESTS="2", CASES=CASES[:90])
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_a_part_of_tests_that_found_none_has_failed(run):
    done = run("test-python", CASES="<testsuites/>")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed"


def test_a_part_that_hangs_is_ended_with_what_it_started(run, tmp_path):
    (tmp_path / "Makefile").write_text("env:\n\tsleep 600 & sleep 600\njars:\n\t@echo ran\n")
    done = run("env", "jars", MOST_S_OF_A_PART="1")
    assert "ended by make test: it took more than 1 s" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 passed, 2 failed"


def test_a_part_that_takes_too_long_tells_which_of_its_tests_have_run(run):
    # In less the shell may not have come to its trap on a busy machine.
    done = run("test-python-slow", MOST_S_OF_A_PART="5")
    assert done.returncode == 1
    assert "ended by make test: it took more than 5 s" in done.stdout
    assert ["71.0", "1", "test-python-slow:", "test_y"] in [
        line.split() for line in done.stdout.splitlines()
    ]

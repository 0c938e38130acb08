"""In each wrong environment a user gets one message that says what to do, and no stack trace."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from click.testing import CliRunner

import aqepilot
import places
import submitting
import tiers
import wrong_environments
from aqepilot.cli import main
from aqepilot.submit import jars, java
from aqepilot.submit.doctor import driver
from wrong_environments import ROOT, tells

Cli = Callable[..., str]
HERE = places.TESTS / "python" / "submit"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """``cli("doctor")``: what a command that has to fail prints."""

    def run(*words: object) -> str:
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code == 1, done.output
        return done.output

    return run


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    path = tmp_path / "sales.toml"
    path.write_text("name = 'sales'\nskew_join = 'null'\n")
    return path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The PATH of a machine with pyspark and without Java."""
    folder = wrong_environments.path_without_java(tmp_path / "path")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


def python(script: str, *before: str, cwd: Path | None = None, **environment: str) -> str:
    """Returns what a script of the user's prints, in a Python of its own."""
    package = str(Path(aqepilot.__file__).parents[1])
    done = subprocess.run(
        [*before, sys.executable, "-c", script],
        env=submitting.environment(short=True, PYTHONPATH=package, **environment),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    return done.stdout + done.stderr


# As a notebook would; the error is printed as its last line.
CONFIGURE = """
import aqepilot
from pyspark.sql import SparkSession
try:
    aqepilot.configure(SparkSession.builder, {"name": "a", "skew_join": "null"}).getOrCreate()
except aqepilot.AqePilotError as error:
    print(error)
"""
CONTROL = """
from aqepilot.cli import main
main(["control", "status", "--file", "hdfs://name/control.json"])
"""


def test_without_java(cli: Cli, path: Path, sales: Path, tmp_path: Path) -> None:
    tells(
        "no Java",
        cli("doctor"),
        cli("check", sales),
        cli("demo", "--data", tmp_path),
    )


@tiers.ON_ONE
@pytest.mark.parametrize("script", [CONFIGURE, CONTROL], ids=["configure", "control"])
def test_without_java_python_says_so_before_spark_is_started(path: Path, script: str) -> None:
    tells("no Java", python(script, PATH=str(path)))


def test_a_java_home_without_java_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(path))
    problem = java.problem()
    assert problem
    assert f"JAVA_HOME is {path}" in problem.message


def test_java_that_is_set_in_sparks_own_script_is_not_looked_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "spark-env.sh").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(path))
    assert java.problem() is None


@pytest.mark.parametrize(("spark", "wanted"), [("4.3.0", 17), ("4.0.0", 17), ("3.5.9", 8)])
def test_java_8(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, sales: Path, spark: str, wanted: int
) -> None:
    wrong_environments.add_java_8(path)
    home = Path(pyspark.__file__).parent
    monkeypatch.setattr(jars, "installed_spark", lambda: jars.Spark(spark, "2.13", home))
    if wanted == 8:
        assert java.problem() is None
    else:
        tells("a Java that is too old", cli("doctor"), cli("check", sales))


def test_without_pyspark(
    path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, sales: Path
) -> None:
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr(jars, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setattr("aqepilot.gateway.find_spec", lambda name: None)
    tells("no pyspark", cli("doctor"), cli("check", sales))


def test_a_spark_that_no_jar_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, sales: Path
) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars/spark-core_2.12-3.4.4.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    facts = {"spark_version": "3.4.4", "scala": "2.12.17", "is_connect": False, "conf": {}}
    findings = driver.examine(facts | {"is_class_found": False, "status": None, "error": "none"})
    (error,) = [finding for finding in findings if finding.level == "error"]
    assert error.code == "JAR_NOT_FOUND"
    tells("a Spark that no jar fits", cli("conf", sales), cli("jar"), error.message)


def test_a_drivers_control_file_without_its_connector() -> None:
    """The driver says what Java says; the doctor adds what to do."""
    message = (
        "spark.aqepilot.control (s3a://b/c.json): RuntimeException: java.lang.ClassNotFound"
        "Exception: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found; shadow holds"
    )
    rows = [["problem", "CONTROL_UNREACHABLE", None, message]]
    facts = {"spark_version": pyspark.__version__, "scala": None, "is_connect": False, "conf": {}}
    findings = driver.examine(facts | {"is_class_found": True, "status": rows, "error": None})
    (unreachable,) = [f.message for f in findings if f.code == "CONTROL_UNREACHABLE"]
    assert wrong_environments.table()["an `s3a://` path without its connector"][0] in unreachable


def test_python_3_9(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make` says so before it makes anything; pip's refusal is a check of `make installs`."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(r'^requires-python = ">=3\.10"$', text, re.MULTILINE)
    spec = importlib.util.spec_from_file_location("needed", ROOT / "tools/prerequisites.py")
    assert spec
    assert spec.loader
    needed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(needed)
    old = SimpleNamespace(version_info=(3, 9, 18), executable="python3.9")
    monkeypatch.setattr(needed, "sys", old)
    tells("Python 3.9", needed.python_problem())


# In another user namespace even root has no right to write where nobody may.
ALONE = ("unshare", "--map-root-user", "--net", "setpriv", "--bounding-set=-dac_override")
needs_namespaces = pytest.mark.skipif(
    subprocess.run(["sh", "-c", f"{' '.join(ALONE)} true"], capture_output=True).returncode != 0,
    reason="no namespaces may be made here",
)


@pytest.fixture
def nowhere(tmp_path: Path) -> Path:
    """A folder in which nobody may write, to be the home and the working folder."""
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o555)
    return folder


@tiers.ON_ONE
@needs_namespaces
def test_read_only_home_and_working_folder(nowhere: Path, tmp_path: Path) -> None:
    script = """
from click.testing import CliRunner
from aqepilot.cli import main
def run(code, *words):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == code, (words, done.exception)
    return done.output
for words in ("jar",), ("conf",), ("recipes",), ("facts", "skew_join"):
    run(0, *words)
WRITE = [["init", "team"], ["doctor", "--script", "job.py"], ["demo"],
    ["control", "off", "--file", "control.json", "--reason", "none"]]
print("".join(run(1, *words) for words in WRITE), end="")
"""
    printed = python(script, *ALONE, cwd=nowhere, HOME=str(nowhere)).splitlines()
    assert len(printed) == 4, printed
    tells("a home and a working folder that are read-only", *printed)


@tiers.ON_ONE
@needs_namespaces
def test_no_network(nowhere: Path, sales: Path) -> None:
    """With the loopback device alone, and no home: a check, which starts a Spark with the jar."""
    script = f"""
import fcntl, socket, struct
SIOCSIFFLAGS, UP = 0x8914, 0x41
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", UP))
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except OSError as error:
    print(error)
from aqepilot.cli import main
main(["check", {str(sales)!r}])
"""
    printed = python(script, *ALONE, cwd=nowhere, HOME=str(nowhere))
    assert "Network is unreachable" in printed
    assert "1 policy: good." in printed
    assert wrong_environments.table()["no network"] == []


def test_the_page_has_each_environment_that_is_tried() -> None:
    files = [HERE / f"test_{live}wrong_environments.py" for live in ("", "live_")]
    tried = {
        name
        for file in files
        for name in re.findall(r'(?:tells\(\s*|table\(\)\[)"([^"]+)"', file.read_text("utf-8"))
    }
    assert tried == set(wrong_environments.table())

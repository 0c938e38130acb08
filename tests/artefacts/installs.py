"""The wheel on each Python at hand: with pyspark, with its client alone, with neither.

Pythons are looked for on the path and in pyenv; one that is not there is said to be skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import processes
from artefacts.built import WHEEL, metadata

UV = Path(".envs/tools/bin/uv").absolute()
# The newest pyspark that runs there, and the newest client on the index for it.
PYSPARK = {"3.10": "4.2.1"}
NEWEST = "4.3.0"
CLIENT = "pyspark-client>=4,<5"
POLICY = "name = 'sales'\njoin_selection = \"CASE WHEN left.size_in_bytes < 1 THEN 'MERGE' END\"\n"


def python_of(minor: str) -> Path | None:
    """Returns an interpreter that starts."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    named = shutil.which(f"python{minor}")
    for path in filter(None, [named, *sorted(home.glob(f"{minor}.*/bin/python"))]):
        version = subprocess.run([path, "-V"], capture_output=True, text=True)
        if version.stdout.startswith(f"Python {minor}."):
            return Path(path)
    return None


def pythons() -> list[str]:
    return re.findall(r":: (3\.\d+)$", "\n".join(metadata().get_all("Classifier")), re.MULTILINE)


@contextmanager
def environment(
    python: Path, *beside: str
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Gives what runs a command there, in an empty folder and with no Spark of this machine."""
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder, "venv")
        subprocess.run([UV, "venv", "-q", "-p", python, venv], check=True)
        stored = "-C--build-option=--compression=stored"
        words = [UV, "pip", "install", "-q", "-p", venv / "bin/python", stored, *beside, WHEEL]
        subprocess.run(words, check=True)
        left_out = ("SPARK", "PYSPARK", "PYTHON", "VIRTUAL_ENV")
        env = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
        env |= {"PATH": f"{venv / 'bin'}:{env['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
        Path(folder, "sales.toml").write_text(POLICY)

        def run(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=900
            )

        yield run


Run = Callable[..., "subprocess.CompletedProcess[str]"]


def prints(run: Run, *command: str) -> str:
    done = run(*command)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr[-2000:]}"
    return done.stdout


def refuses(run: Run, words: str, *command: str) -> None:
    """It ends with 1, and says in a line what to do: no traceback."""
    done = run(*command)
    failure = f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}"
    assert done.returncode == 1, failure
    assert words in done.stderr, failure
    assert "Traceback" not in done.stderr, failure


def needs_no_spark(run: Run) -> None:
    prints(run, "python", "-c", "import aqepilot; aqepilot.Policy(name='a', skew_join='null')")
    assert "Commands" in prints(run, "aqepilot", "--help")
    assert prints(run, "aqepilot", "jar", "--spark", "4.3").strip().endswith(".jar")
    assert "spark.sql.extensions" in prints(run, "aqepilot", "conf", "sales.toml", "--spark", "3.5")
    assert "name" in prints(run, "aqepilot", "recipes", "hot_keys", "--spark", "4.3")
    assert "side" in prints(run, "aqepilot", "facts", "dynamic_join_selection")


def lacks_a_spark(run: Run) -> None:
    """What needs a Spark says which one to install."""
    refuses(run, "no Spark is installed here", "aqepilot", "jar")
    for command in (
        ("check", "sales.toml"),
        ("replay", "--log", "none", "--policy", "sales.toml"),
        ("suggest", "--log", "none"),
    ):
        refuses(run, "pip install 'pyspark==", "aqepilot", *command)
    refuses(run, "aqepilot[mcp]", "aqepilot", "mcp")
    refuses(run, "aqepilot[report]", "aqepilot", "report", "--log", "none", "-o", "report.html")


JOB = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
left, right = (spark.range(n).repartition(4, "id") for n in (3000, 1000))
print("ROWS", left.join(right, "id").count())
"""


def a_team_begins(run: Run) -> None:
    """As the folder's README says: settings, a job with event logs, the check with a replay."""
    script = f"open('job.py', 'w').write({JOB!r}); import os; os.mkdir('logs')"
    prints(run, "python", "-c", script)
    jar = prints(run, "aqepilot", "jar").strip()
    prints(run, "aqepilot", "init", "team", "--jar-uri", jar)
    prints(run, "sh", "team/conf.sh")
    # Compressed ones, as Spark 4 writes them, are read by PyArrow, which pyspark does not bring.
    logged = {"enabled": "true", "dir": "logs", "compress": "false"}
    words = processes.words({f"spark.eventLog.{key}": value for key, value in logged.items()})
    conf = ["--properties-file", "team/conf/spark-defaults.conf"]
    assert "ROWS 1000" in prints(run, "spark-submit", *conf, *words, "job.py")
    printed = prints(run, "sh", "-c", "EVENT_LOGS=$PWD/logs sh team/check.sh")
    assert "1 policy: good." in printed, printed
    assert re.search(r"policies were asked [1-9]", printed), printed


PAGE = Path("docs/start/quick-start.md")


def quick_start() -> str:
    """The page's commands, one after the other; says how long the demo's two runs took."""
    python = next(filter(None, map(python_of, pythons()[1:])), None)
    if python is None:
        return "skipped, no Python that runs Spark 4.3 at hand"
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    pip, *commands = "".join(blocks).splitlines()
    assert pip == f"pip install aqepilot 'pyspark=={NEWEST}'"
    with environment(python, f"pyspark=={NEWEST}") as run:
        prints(run, "python", "-c", f"open('job.py', 'w').write({JOB!r})")
        shown = [prints(run, "bash", "-ec", command) for command in commands]
    assert "adopted" in shown[0], shown[0]
    assert "the same" in shown[0], shown[0]
    seconds = {}
    for name in ("query", "its longest task"):
        row = re.search(rf"│ +{name} +│ +([\d.]+) s +│ +([\d.]+) s", shown[0])
        assert row, shown[0]
        seconds[name] = float(row[1]), float(row[2])
    assert "ROWS 1000" in shown[-1], shown[-1]
    return "passed; " + "; ".join(
        f"{name}: {plain} s plain, {decided} s with the policy"
        for name, (plain, decided) in seconds.items()
    )


def on(minor: str) -> Callable[[], str | None]:
    def installs() -> str | None:
        python = python_of(minor)
        if python is None:
            return "skipped, no such Python at hand"
        with environment(python) as run:
            needs_no_spark(run)
            lacks_a_spark(run)
        with environment(python, f"pyspark=={PYSPARK.get(minor, NEWEST)}") as run:
            needs_no_spark(run)
            assert "good" in prints(run, "aqepilot", "check", "sales.toml")
            a_team_begins(run)
        with environment(python, CLIENT) as run:
            needs_no_spark(run)
            lacks_a_spark(run)
        return None

    return installs


def refused_by_pip() -> str | None:
    """On a Python that is too old, pip says so before it installs anything."""
    python = python_of("3.9")
    if python is None:
        return "skipped, no such Python at hand"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        words = [f"{folder}/bin/pip", "install", "--no-index", "--no-deps", WHEEL]
        done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    assert "requires a different Python" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return None


CHECKS: dict[str, Callable[[], str | None]] = {
    f"python_{minor}": on(minor) for minor in (pythons() if WHEEL.exists() else ())
} | {"python_3.9": refused_by_pip, "quick_start": quick_start}

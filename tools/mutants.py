"""Plants a fault in a copy of the sources, and counts the examples that the fuzz takes to find it.

A mutant is a file of tests/mutants: what it breaks, on which Sparks it can show, and edits, each of
which replaces a text that must stand in its file once. The copy is built and fuzzed until a run
differs from plain Spark's, or until N examples passed: then the mutant survived, and what is drawn
is too little. The sources as they are come first, and have to survive.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = ROOT / "tests" / "mutants"
FUZZ = "tests/python/plain_spark/test_live_fuzz.py"
COPY = ROOT / "target" / "mutants"
AS_IT_IS = "as-it-is"


class Edit(NamedTuple):
    file: str
    old: str
    new: str


class Mutant(NamedTuple):
    name: str
    breaks: str
    sparks: list[str]
    edits: list[Edit]


class Spark(NamedTuple):
    """A row of the table of Spark versions."""

    minor: str
    scala: str
    patch: str

    @property
    def project(self) -> str:
        return f"aqepilot-spark-{self.minor}_{self.scala}".replace(".", "_")


def mutants(names: list[str]) -> list[Mutant]:
    """The mutants of these names, or all, after the sources as they are.

    A mutant's file has `breaks`, `sparks` and several `[[edit]]` of `file`, `old` and `new`.
    """
    listed = [Mutant(AS_IT_IS, "nothing: has to survive", ["3.5", "4.3"], [])]
    for path in sorted(MUTANTS.glob("*.toml")):
        table = tomllib.loads(path.read_text())
        edits = [Edit(edit["file"], edit["old"], edit["new"]) for edit in table["edit"]]
        listed.append(Mutant(path.stem, table["breaks"], table["sparks"], edits))
    unknown = {*names} - {mutant.name for mutant in listed}
    if unknown:
        sys.exit(f"No such mutant: {', '.join(sorted(unknown))}")
    return [mutant for mutant in listed if not names or mutant.name in names]


def edited(mutant: Mutant) -> dict[str, str]:
    """The files that a mutant changes, and their new texts.

    Exits where a text is not there exactly once: the sources have changed, and the mutant has to
    be written anew.
    """
    texts: dict[str, str] = {}
    for edit in mutant.edits:
        text = texts.get(edit.file) or (ROOT / edit.file).read_text()
        times = text.count(edit.old)
        if times != 1:
            sys.exit(f"{mutant.name}: found {times} times in {edit.file}, not once:\n{edit.old}")
        texts[edit.file] = text.replace(edit.old, edit.new)
    return texts


def copied() -> None:
    """Brings the copy up to date; what it has built stays."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.splitlines():
        source, to = ROOT / name, COPY / name
        if not source.is_file():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.is_file() or to.read_bytes() != source.read_bytes():
            shutil.copyfile(source, to)
    environments = COPY / ".envs"
    if not environments.exists():
        environments.symlink_to((ROOT / ".envs").resolve())


def built(spark: Spark, log: Path) -> None:
    launcher = COPY / ".envs" / "tools" / "sbt-launch.jar"
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else "java"
    options = ["-Xmx2g", "-Xss8m", "-Dsbt.supershell=false", "-Dsbt.color=false"]
    with log.open("w") as out:
        done = subprocess.run(
            [java, *options, "-jar", str(launcher), f"{spark.project}/jar"],
            cwd=COPY,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    if done.returncode:
        sys.exit(f"The build failed, see {log}:\n{log.read_text()[-2000:]}")


def fuzzed(spark: Spark, examples: int, seed: int, log: Path) -> str:
    """How many examples it took, and what was found; or that the mutant survived them."""
    environment = COPY / ".envs" / f"spark-{spark.patch}"
    variables = {k: v for k, v in os.environ.items() if k not in ("SPARK_HOME", "SPARK_CONF_DIR")}
    variables |= {
        "PATH": f"{environment}/bin:{variables['PATH']}",
        "PYTHONPATH": str(COPY / "python"),
        "TEST_ALL": "1",
        "FUZZ_N": str(examples),
        "FUZZ_SEED": str(seed),
        "FUZZ_SHRINK": "0",
    }
    words = ["-m", "pytest", "-q", "-o", "faulthandler_timeout=0", FUZZ]
    with log.open("w") as out:
        done = subprocess.run(
            [str(environment / "bin" / "python"), *words],
            cwd=COPY,
            env=variables,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    text = log.read_text()
    if not done.returncode:
        return f"survived {examples}"
    match = re.search(r"Failed in example (\d+) .*", text)
    if not match:
        return f"no example failed, but the test did: see {log}"
    error = re.findall(r"^E +(\w[\w.]*(?:Error|Exception)\b:? ?.*)", text, re.MULTILINE)
    return f"{match[1]} ({error[0][:70].strip() if error else 'see ' + str(log)})"


def sparks(names: list[str]) -> list[Spark]:
    lines = (ROOT / "python" / "aqepilot" / "spark_versions.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    listed = [Spark(row[0], row[1], row[2]) for row in rows if row[4] == "full" and row[0] in names]
    patches = [Spark(row[0], row[1], name) for name in names for row in rows if _has(row, name)]
    return [*listed, *patches]


def _has(row: list[str], patch: str) -> bool:
    """Whether a row's jar is that of a patch such as 3.5.0."""
    return row[4] != "jvm" and patch.startswith(f"{row[0]}.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="mutants, by the names of their files; else all")
    parser.add_argument(
        "--spark", action="append", help="3.5, 4.3 or a patch; else what each is for"
    )
    parser.add_argument("--examples", type=int, default=2000, help="at most; default 2000")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chosen = mutants(args.names)
    logs = ROOT / "target" / "mutants-logs"
    logs.mkdir(parents=True, exist_ok=True)
    texts = {mutant.name: edited(mutant) for mutant in chosen}
    unexpected = 0
    print(
        "| Mutant | What it breaks | Spark | Examples until found |\n|---|---|---|---|", flush=True
    )
    for mutant in chosen:
        copied()
        for file, text in texts[mutant.name].items():
            (COPY / file).write_text(text)
        for spark in sparks(args.spark or mutant.sparks):
            if not {spark.minor, spark.patch} & {*mutant.sparks}:
                continue
            log = f"{mutant.name}-{spark.patch}"
            built(spark, logs / f"{log}.build.log")
            outcome = fuzzed(spark, args.examples, args.seed, logs / f"{log}.fuzz.log")
            survived = outcome.startswith("survived")
            unexpected += survived != (mutant.name == AS_IT_IS)
            row = (f"`{mutant.name}`", mutant.breaks, spark.patch, outcome.replace("|", "/"))
            print(f"| {' | '.join(row)} |", flush=True)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())

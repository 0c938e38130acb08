"""Looks at a Spark as jobs see it: is aqepilot live there, and what stands in its way."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from aqepilot import catalog
from aqepilot.__about__ import __version__
from aqepilot.errors import AqePilotError, JarError, Problem, nearest, with_connector
from aqepilot.policies import PARTS, PREFIX
from aqepilot.submit import jars, java
from aqepilot.submit.conf import parse_defaults
from aqepilot.submit.doctor import probe
from aqepilot.submit.doctor.probe import MODE_KEY, MODES, POLICIES_KEY, Finding, split

# What of a job's settings a file system needs to be reached.
_OF_FILE_SYSTEMS = ("spark.hadoop.", "spark.jars", "spark.kerberos.", "spark.driver.extraClassPath")
# Of a driver's log: on YARN, what it says while it stops would hide what it stopped for.
_TELLS_NOTHING = re.compile(r"\tat |\S+ \S+ (INFO|DEBUG|TRACE) ")
_SHORT = {"--jars": "spark.jars", "--packages": "spark.jars.packages"}


def run(submit_words: Sequence[str] = (), answer_in: str | None = None) -> list[Finding]:
    """Starts a session through spark-submit and reports its findings.

    Args:
        submit_words: Words for spark-submit, e.g. ``--master yarn --conf a=b``: those of the job.
        answer_in: A folder that the driver and this machine reach, for ``--deploy-mode cluster``,
            where the driver's output stays on the cluster; null for what it prints. The answer is
            read with the job's settings for its file system, and deleted.

    Raises:
        AqePilotError: There is no spark-submit, or the session did not start or answer.
    """
    return examine(submit_probe(submit_words, answer_in))


def submit_probe(submit_words: Sequence[str] = (), answer_in: str | None = None) -> dict[str, Any]:
    """Runs the probe under spark-submit; returns the facts that it gathered.

    Raises:
        AqePilotError: There is no spark-submit, or the session did not start or answer.
    """
    answer = f"{answer_in.rstrip('/')}/aqepilot-doctor-{uuid4().hex}.json" if answer_in else None
    with TemporaryDirectory() as folder:
        script = shutil.copy(probe.__file__, Path(folder, "aqepilot_doctor.py"))
        words = [spark_submit(), *submit_words, str(script), *([answer] if answer else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(probe.MARK):
            if answer:
                _answered(answer, submit_words)
            facts: dict[str, Any] = json.loads(line.removeprefix(probe.MARK))
            return facts
    if answer and (result := _answered(answer, submit_words)) is not None:
        return dict(result["facts"])
    java.require()
    lines = [line for line in done.stderr.splitlines() if line and not _TELLS_NOTHING.match(line)]
    output = "\n".join(f"  {line}" for line in lines[-15:])
    hint = (
        " In cluster mode the driver's output stays on the cluster: name a folder that it and this "
        "machine reach with --answer-in, or use --deploy-mode client."
        if not answer and ("cluster" in submit_words or "--deploy-mode=cluster" in submit_words)
        else ""
    )
    message = (
        f"spark-submit ended with {done.returncode} before the probe answered.{hint}\n{output}"
    )
    raise AqePilotError(Problem("SPARK_NOT_STARTED", message))


def _answered(path: str, submit_words: Sequence[str]) -> dict[str, Any] | None:
    """Returns what the probe wrote, which is deleted; null where it did not."""
    from aqepilot.control.hadoop import HadoopFile

    try:
        file = HadoopFile(path, _file_system_settings(submit_words))
        text = file.read()
        if text is None:
            return None
        file.remove()
        result: dict[str, Any] = json.loads(text)
    except (AqePilotError, ValueError) as error:
        message = f"the answer at {path} cannot be read: {str(error).splitlines()[0]}"
        raise AqePilotError(Problem("SPARK_NOT_STARTED", message)) from error
    return result


def _file_system_settings(submit_words: Sequence[str]) -> dict[str, str]:
    """What of the job's settings it takes to reach its file system from here.

    >>> _file_system_settings(["--conf", "spark.hadoop.a=b", "--conf=spark.x=1", "--jars", "a.jar"])
    {'spark.jars': 'a.jar', 'spark.hadoop.a': 'b'}
    """
    words = [
        part
        for word in submit_words
        for part in (word.split("=", 1) if re.match(r"--[\w-]+=", word) else [word])
    ]
    values: dict[str, str] = {}
    options = dict(pair for pair in pairwise(words) if pair[0].startswith("--"))
    if file := options.get("--properties-file"):
        values |= parse_defaults(Path(file).read_text("utf-8"))
    values |= {key: options[word] for word, key in _SHORT.items() if word in options}
    for word, setting in pairwise(words):
        if word in ("--conf", "-c"):
            key, _, value = setting.partition("=")
            values[key.strip()] = value
    return {key: value for key, value in values.items() if key.startswith(_OF_FILE_SYSTEMS)}


def spark_submit() -> str:
    """Returns the path of spark-submit: of SPARK_HOME, else the PATH's, else pyspark's.

    Raises:
        AqePilotError: There is none.
    """
    home = os.environ.get("SPARK_HOME")
    installed = jars.installed_spark()
    candidates = (
        shutil.which("spark-submit", path=str(Path(home, "bin"))) if home else None,
        shutil.which("spark-submit"),
        str(installed.home / "bin" / "spark-submit") if installed and installed.home else None,
    )
    for candidate in candidates:
        if candidate:
            return candidate
    message = "there is no spark-submit: set SPARK_HOME, or pip install pyspark."
    raise AqePilotError(Problem("SPARK_NOT_FOUND", message))


def examine(facts: Mapping[str, Any]) -> list[Finding]:
    """Says what is well and what is wrong, by the facts that the probe gathered."""
    jar, no_jar = fitting(facts)
    is_live = probe.why_not_live(facts, jar, no_jar) is None
    more = _versions(facts) if is_live else _settings_without_extension(facts["conf"])
    return [
        finding._replace(message=with_connector(finding.message)) if is_live else finding
        for finding in probe.findings(facts, jar, no_jar, list(more))
    ]


def why_not_live(facts: Mapping[str, Any]) -> list[Problem]:
    """Tells why the extension is not live; an empty list means that it is.

    Args:
        facts: What `probe.gather` returned.
    """
    jar, no_jar = fitting(facts)
    why = probe.why_not_live(facts, jar, no_jar)
    return [Problem(*why)] if why else []


def fitting(facts: Mapping[str, Any]) -> tuple[str, probe.Problem | None]:
    """Returns the path of the jar that fits a session's Spark, or the reason why there is none."""
    try:
        return str(jars.find(facts["spark_version"], probe.minor_of(facts["scala"]))), None
    except JarError as error:
        (first, *_) = error.problems
        return f"(none: {error})", probe.Problem(*first[:3])


def _versions(facts: Mapping[str, Any]) -> Iterator[Finding]:
    own = next((value for kind, _, value, _ in facts["status"] if kind == "version"), None)
    if own != __version__:
        yield Finding(
            "warning",
            "VERSIONS_DIFFER",
            f"the jar is of aqepilot {own} and this Python package is {__version__}: use the jar "
            "that `aqepilot jar` names.",
        )


def _settings_without_extension(conf: Mapping[str, str]) -> Iterator[Finding]:
    """The problems that the extension itself would have reported of the settings."""
    fixed = {s.key for s in catalog.settings() if "<" not in s.key}
    parts = (*catalog.point_names(), *PARTS)
    for key in sorted(key for key in conf if key.startswith(PREFIX)):
        policy = re.fullmatch(rf"{re.escape(PREFIX)}policy\.([a-z][a-z0-9_]*)\.(.+)", key)
        if key not in fixed and not (policy and policy[2] in parts):
            known = [f"{PREFIX}policy.{policy[1]}.{p}" for p in parts] if policy else fixed
            near = " or ".join(nearest(key, known))
            hint = f"; did you mean {near}?" if near else "."
            yield Finding("error", "SETTING_UNKNOWN", f"{key} is not a setting{hint}")
        is_mode = key == MODE_KEY or (policy and policy[2] == "mode")
        if is_mode and conf[key] not in MODES:
            message = f"{key}: {conf[key]!r} is not one of {', '.join(MODES)}."
            yield Finding("error", "MODE_INVALID", message)
    for name in split(conf.get(POLICIES_KEY)):
        keys = [f"{PREFIX}policy.{name}.{point}" for point in catalog.point_names()]
        if not any(key in conf for key in keys):
            message = f"{POLICIES_KEY} names {name!r}, but none of {', '.join(keys)} is set."
            yield Finding("error", "POLICY_NOT_DEFINED", message)

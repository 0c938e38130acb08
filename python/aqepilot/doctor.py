"""Looks at a Spark as jobs see it: is aqepilot live there, and what stands in its way."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple
from uuid import uuid4

from aqepilot import catalog, jars, live, probe
from aqepilot.__about__ import __version__
from aqepilot.conf import POLICIES_KEY, split
from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.log import files
from aqepilot.policies import PREFIX

_MODES = ("off", "shadow", "enforce")


class Finding(NamedTuple):
    """What the doctor found.

    Attributes:
        level: ``ok``, ``warning`` (works, though perhaps not as meant) or ``error``.
        code: A stable name, upper snake case.
        message: What it is and, unless it is well, what to do.
    """

    level: Literal["ok", "warning", "error"]
    code: str
    message: str


def run(submit_words: Sequence[str] = (), answer_in: str | None = None) -> list[Finding]:
    """Starts a session through spark-submit and says what it finds there.

    Args:
        submit_words: Words for spark-submit, e.g. ``--master yarn --conf a=b``: those of the job.
        answer_in: A folder that the driver and this machine reach, for ``--deploy-mode cluster``,
            where the driver's output stays on the cluster; null for what it prints.

    Raises:
        AqePilotError: There is no spark-submit, or the session did not start or answer.
    """
    return examine(submit_probe(submit_words, answer_in))


def submit_probe(submit_words: Sequence[str] = (), answer_in: str | None = None) -> dict[str, Any]:
    """Runs the probe under spark-submit; returns the facts that it gathered.

    Raises:
        AqePilotError: There is no spark-submit, or the session did not start or answer.
    """
    answer = f"{answer_in.rstrip('/')}/aqepilot-doctor-{uuid4().hex}" if answer_in else None
    with TemporaryDirectory() as folder:
        script = shutil.copy(probe.__file__, Path(folder, "aqepilot_doctor.py"))
        words = [spark_submit(), *submit_words, str(script), *([answer] if answer else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    for line in [*done.stdout.splitlines(), *(_answered(answer) if answer else [])]:
        if line.startswith(probe.MARK):
            facts: dict[str, Any] = json.loads(line.removeprefix(probe.MARK))
            return facts
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("\tat ")]
    said = "\n".join(f"  {line}" for line in lines[-15:])
    hint = (
        " In cluster mode the driver's output stays on the cluster: name a folder that it and this "
        "machine reach with --answer-in, or use --deploy-mode client."
        if not answer and ("cluster" in submit_words or "--deploy-mode=cluster" in submit_words)
        else ""
    )
    message = f"spark-submit ended with {done.returncode} before the probe answered.{hint}\n{said}"
    raise AqePilotError(Problem("SPARK_NOT_STARTED", message))


def _answered(folder: str) -> list[str]:
    """What the probe wrote; nothing where it did not."""
    from aqepilot.check import local_session

    with local_session("local[1]", "aqepilot doctor") as spark:
        try:
            return [row[0] for row in spark.read.text(folder).collect()]
        except Exception as error:
            if files.is_not_there(error):
                return []
            message = f"the answer in {folder} cannot be read: {str(error).splitlines()[0]}"
            raise AqePilotError(Problem("SPARK_NOT_STARTED", message)) from error


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
    conf = facts["conf"]
    why_not_live = live.diagnose(facts)
    findings = [Finding("error", p.code, p.message) for p in why_not_live]
    if why_not_live:
        findings += _settings_without_extension(conf)
    else:
        findings += _live(facts)
    two_jars = live.two_jars(live.aqepilot_jars(conf))
    if two_jars and not any(f.code == "TWO_JARS" for f in findings):
        findings.append(Finding("error", two_jars.code, two_jars.message))
    return [*findings, *_policies(conf), *_spark_settings(conf)]


def _live(facts: Mapping[str, Any]) -> Iterator[Finding]:
    rows = facts["status"]
    own = next((value for kind, _, value, _ in rows if kind == "version"), None)
    running, built_for = facts["spark_version"], None
    for kind, name, value, _ in rows:
        if (kind, name) == ("spark", "built_for"):
            built_for = value
    jar = next((value for kind, _, value, _ in rows if kind == "jar"), None)
    message = f"aqepilot {own} is live in Spark {running} (built for {built_for}; {jar})."
    yield Finding("ok", "LIVE", message)
    if own != __version__:
        yield Finding(
            "warning",
            "VERSIONS_DIFFER",
            f"the jar is of aqepilot {own} and this Python package is {__version__}: use the jar "
            "that `aqepilot jar` names.",
        )
    for kind, name, value, detail in rows:
        if kind == "problem":
            yield Finding("error", name, detail or value or name)
        elif kind == "point" and value == "live":
            yield Finding("ok", "POINT_LIVE", f"{name} is live.")
        elif kind == "policy" and value in _MODES:
            yield Finding("ok", "POLICY", f"policy {name}: {value}.")


def _settings_without_extension(conf: Mapping[str, str]) -> Iterator[Finding]:
    """What the extension itself would have said of the settings."""
    fixed = {s.key for s in catalog.settings() if "<" not in s.key}
    parts = (*catalog.point_names(), "when", "mode")
    for key in sorted(key for key in conf if key.startswith(PREFIX)):
        policy = re.fullmatch(rf"{re.escape(PREFIX)}policy\.([a-z][a-z0-9_]*)\.(.+)", key)
        if key not in fixed and not (policy and policy[2] in parts):
            known = [f"{PREFIX}policy.{policy[1]}.{p}" for p in parts] if policy else fixed
            near = " or ".join(nearest(key, known))
            hint = f"; did you mean {near}?" if near else "."
            yield Finding("error", "SETTING_UNKNOWN", f"{key} is not a setting{hint}")
        is_mode = key == f"{PREFIX}mode" or (policy and policy[2] == "mode")
        if is_mode and conf[key] not in _MODES:
            message = f"{key}: {conf[key]!r} is not one of {', '.join(_MODES)}."
            yield Finding("error", "MODE_INVALID", message)
    for name in split(conf.get(POLICIES_KEY)):
        keys = [f"{PREFIX}policy.{name}.{point}" for point in catalog.point_names()]
        if not any(key in conf for key in keys):
            message = f"{POLICIES_KEY} names {name!r}, but none of {', '.join(keys)} is set."
            yield Finding("error", "POLICY_NOT_DEFINED", message)


def _policies(conf: Mapping[str, str]) -> Iterator[Finding]:
    if not split(conf.get(POLICIES_KEY)):
        message = f"no policy is submitted ({POLICIES_KEY} is not set): `aqepilot conf FILE...`."
        yield Finding("warning", "NO_POLICY", message)
    elif conf.get(f"{PREFIX}mode") == "off":
        message = f"{PREFIX}mode is off: no policy is asked."
        yield Finding("warning", "MODE_OFF", message)


def _spark_settings(conf: Mapping[str, str]) -> Iterator[Finding]:
    if conf.get("spark.sql.adaptive.enabled", "true").lower() == "false":
        message = (
            "spark.sql.adaptive.enabled is false: Spark decides nothing while queries run, so no "
            "policy is asked. Set it to true."
        )
        yield Finding("error", "AQE_OFF", message)
    key = "spark.sql.adaptive.optimizer.excludedRules"
    excluded = [
        rule
        for rule in split(conf.get(key))
        if rule.endswith((".DynamicJoinSelection", ".DemoteBroadcastHashJoin"))
    ]
    if excluded:
        message = (
            f"{key} switches Spark's own rule off ({', '.join(excluded)}): where a policy has no "
            "answer, nothing demotes broadcasts."
        )
        yield Finding("warning", "RULE_EXCLUDED", message)
    yield from _sizes(conf)
    if conf.get("spark.eventLog.enabled", "false").lower() != "true":
        message = (
            "spark.eventLog.enabled is not true: decisions are not kept beyond the driver's life. "
            "Set it, and spark.eventLog.dir, to keep the record."
        )
        yield Finding("warning", "EVENT_LOG_OFF", message)
    else:
        folder = conf.get("spark.eventLog.dir", "Spark's default folder")
        yield Finding("ok", "EVENT_LOG_ON", f"the event log is on ({folder}).")


def _sizes(conf: Mapping[str, str]) -> Iterator[Finding]:
    exact = _number(conf.get("spark.shuffle.minNumPartitionsToHighlyCompress"), 2000)
    for key in (
        "spark.sql.shuffle.partitions",
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum",
    ):
        partitions = _number(conf.get(key), 0)
        if partitions > exact:
            message = (
                f"{key} is {partitions}: above {exact} partitions Spark reports averages for small "
                "blocks, so that a partition to which many map tasks each gave a little much looks "
                "like any other (bytes_are_exact is false). Raise "
                "spark.shuffle.minNumPartitionsToHighlyCompress, which takes memory in the driver."
            )
            yield Finding("warning", "SIZES_AVERAGED", message)


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.strip().isdecimal() else otherwise

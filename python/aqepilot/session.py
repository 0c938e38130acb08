"""aqepilot in a Spark session: switch it on, change its policies, see what it did.

Speaks settings and SQL only, so that it works in Spark Connect sessions too; Python functions and
Columns are for classic sessions, in the driver's own Python.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from aqepilot import catalog, gateway, session_policies, texts
from aqepilot.decision import COLUMNS, Decision, Decisions
from aqepilot.display import Column, Listed, Table, folded
from aqepilot.errors import AqePilotError, NotLiveError, PolicyError, Problem, first_line
from aqepilot.policies import PARTS, PREFIX, Policy, as_policies
from aqepilot.session_policies import PolicyLike
from aqepilot.submit import jars, java
from aqepilot.submit.conf import TOKEN_KEY, parse_defaults, settings
from aqepilot.submit.doctor import driver, probe
from aqepilot.submit.doctor.probe import (
    EXTENSION,
    EXTENSIONS_KEY,
    JARS_KEY,
    POLICIES_KEY,
    split,
)

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

Builder = TypeVar("Builder")
# Spark's and platforms' error classes; 3.5 has words only.
_SETTING_REFUSED = re.compile(
    r"CANNOT_MODIFY_(?:STATIC_)?CONFIG|CONFIG_NOT_AVAILABLE|Cannot modify the value of a"
)
_before_use: WeakKeyDictionary[SparkSession, dict[str, str | None]] = WeakKeyDictionary()


class Status(NamedTuple):
    """One row of the extension's status.

    Attributes:
        kind: ``version``, ``jar``, ``spark``, ``mode``, ``run``, ``point``, ``policy``,
            ``setting``, ``guard``, ``python``, ``problem`` or ``counter``.
        name: What it is about.
        value: Its value; null when there is none.
        detail: More, as a sentence or JSON; null when there is none.
    """

    kind: str
    name: str
    value: str | None
    detail: str | None


class Statuses(Listed[Status]):
    """What the extension says of itself, which shows itself as a table."""

    __slots__ = ()

    def _table(self, most: int) -> Table:
        names = ("Kind", "Name", "Value", "Detail")
        problems = sum(row.kind == "problem" for row in self)
        beside = f", {texts.plural(problems, 'problem')}" if problems else ""
        # Problems are what a person looks for: they are never left out.
        ordered = sorted(self, key=lambda row: row.kind != "problem")[:most]
        more = len(self) - len(ordered)
        return Table(
            f"aqepilot in this session: {texts.plural(len(self), 'row')}{beside}",
            [Column(name) for name in names],
            [(row.kind, row.name, folded(row.value), folded(row.detail)) for row in ordered],
            note=f"{more:,} more rows are in the list." if more else "",
        )


def configure(builder: Builder, *policies: PolicyLike, jar: str | Path | None = None) -> Builder:
    """Adds aqepilot and policies to a session that is yet to be made.

    Extensions, jars and policies that are in the builder, in the submitted configuration or in
    spark-defaults.conf stay. Policies of several calls are asked in the order of the calls, those
    of the submitted configuration after them.

    Args:
        builder: A `SparkSession.builder`.
        *policies: Policies, mappings with a policy file's keys, or paths of policy files.
        jar: The jar of aqepilot; null for the one in this package that fits the installed Spark.

    Returns:
        The builder.

    Raises:
        PolicyError: A policy is wrong; lists all that is.
        JarError: No jar fits the installed Spark.
        NotLiveError: A Spark without aqepilot runs already: it cannot be added to that.
        AqePilotError: This Python has no Spark that it can start, or no Java for it, and no server
            is named.
    """
    checked = as_policies(policies)
    options: dict[str, str] = {k: str(v) for k, v in vars(builder)["_options"].items()}
    remote = options.get("spark.remote") or os.environ.get("SPARK_REMOTE", "")
    if remote and not remote.startswith("local"):
        return _with(builder, _with_policies(checked, None, options, {}))
    running = gateway.running_conf()
    if running is not None:
        if EXTENSION not in split(running.get(EXTENSIONS_KEY)):
            raise NotLiveError(_running_without(running))
        session = gateway.next_session()
        merged = _with_policies(checked, None, options, running)
        if session_policies.allowed(session, checked):
            merged[TOKEN_KEY] = session.token
        return _with(builder, merged)
    path = str(jar or jars.find())
    if gateway.is_running():
        there = gateway.submitted_conf()
        if not probe.aqepilot_jars(there):
            gateway.add_to_class_path(path)
            return _with(builder, _with_policies(checked, path, options, there))
        path = probe.aqepilot_jars(there)[0]
    else:
        java.require()
        there = _defaults() | _submit_args(path)
    return _with(builder, _with_policies(checked, path, options, there))


def use(spark: SparkSession, *policies: PolicyLike, name: str = "session", **points: Any) -> None:
    """Sets the policies of this session, checked before anything is changed.

    They are asked in this order, before those that the session was submitted with; one of the same
    name as a submitted policy replaces it here. Each call takes the place of the one before, so
    that `use(spark)` goes back to the submitted policies. Holds for queries that begin after it.

    In a classic session what is given at a decision point, here or in a mapping, may also be a
    Python function of the facts, which is pickled as a UDF is and runs in a process of its own, or
    a PySpark Column over the facts, which becomes SQL text.

    Args:
        spark: A session, classic or Spark Connect, in which the extension is live.
        *policies: Policies, mappings with a policy file's keys, or paths of policy files.
        name: The name of one more policy, which the keywords make; it is asked after the others.
        **points: What it answers, by decision point; also its `when` and `mode`.

    Raises:
        PolicyError: A policy is wrong, or its SQL does not fit its decision point; lists all that
            is wrong in all of them, with places. Nothing is set.
        NotLiveError: The extension is not live here, or is off at a point of a policy; says why
            and what to do; or the session may not change its settings. Nothing is set.
    """
    asked = [*policies, {"name": name, **points}] if points else policies
    read = session_policies.read(spark, asked)
    rows = status(spark)
    off = {row.name: row.detail for row in rows if row.kind == "point" and row.value == "off"}
    needed = {point for one in read for point in one.policy.points}
    if needed & off.keys():
        raise NotLiveError(
            Problem("POINT_OFF", f"{name} is off in this Spark: {off[name]}")
            for name in sorted(needed & off.keys())
        )
    token = spark.conf.get(TOKEN_KEY, None)
    try:
        with _refusals_told():
            checked = session_policies.as_texts(spark, read)
        problems = [problem for policy in checked for problem in check_texts(spark, policy)]
        if problems:
            raise PolicyError(problems)
    except Exception:
        if token is None:
            spark.conf.unset(TOKEN_KEY)
        raise
    with _refusals_told():
        _set(spark, checked)
    if (
        token is not None
        and not session_policies.names_python(checked)
        and not probe.is_connect(spark)
    ):
        gateway.session(spark).rest()


def status(spark: SparkSession) -> Statuses:
    """Returns the extension's status: versions, points, policies, problems, counters.

    Raises:
        NotLiveError: The extension is not live in this session; says why and what to do.
    """
    sql = "SELECT kind, name, value, detail FROM aqepilot_status()"
    return Statuses(Status(*row) for row in _rows(spark, sql))


def decisions(spark: SparkSession) -> Decisions:
    """Returns this session's recorded decisions, oldest first; as many as the driver keeps.

    Raises:
        NotLiveError: The extension is not live in this session; says why and what to do.
    """
    columns = ", ".join(f"`{name}`" for name in COLUMNS)
    sql = f"SELECT {columns} FROM aqepilot_decisions() ORDER BY decision_id"
    return Decisions(Decision(*row) for row in _rows(spark, sql))


def check_texts(spark: SparkSession, policy: Policy) -> list[Problem]:
    """Binds each text of a policy in a live session; returns what is wrong, with places."""
    return [problem for key in policy.texts() for problem in check_text(spark, policy, key)]


def check_text(spark: SparkSession, policy: Policy, key: str) -> list[Problem]:
    """Binds one text of a policy: that of a decision point, or of ``when``."""
    sql = "SELECT code, message, line, `column`, suggestions FROM aqepilot_check(:point, :text)"
    rows = spark.sql(sql, args={"point": key, "text": policy.texts()[key]}).collect()
    return [
        Problem(
            row["code"],
            row["message"],
            policy.place(key, row["line"], row["column"]),
            tuple(row["suggestions"] or ()),
        )
        for row in rows
    ]


def _rows(spark: SparkSession, sql: str) -> list[Row]:
    try:
        return spark.sql(sql).collect()
    except Exception as error:
        if "UNRESOLVABLE_TABLE_VALUED_FUNCTION" not in str(error):
            raise
    problems = driver.why_not_live(probe.gather(spark))
    raise NotLiveError(
        problems or Problem("EXTENSION_FAILED", "the session lost aqepilot; make a new one.")
    ) from None


def _set(spark: SparkSession, policies: list[Policy]) -> None:
    """Undoes the last `use` of the session and does the new one; the list of names comes last."""
    before = _before_use.setdefault(spark, {})

    def at_first(key: str) -> str | None:
        return before[key] if key in before else spark.conf.get(key, None)

    names = [policy.name for policy in policies]
    names += [name for name in split(at_first(POLICIES_KEY)) if name not in names]
    wanted: dict[str, str | None] = dict(before)
    for policy in policies:
        prefix = f"{PREFIX}policy.{policy.name}."
        keys = (*catalog.point_names(), *PARTS)
        wanted |= {prefix + key: policy.to_conf().get(prefix + key) for key in keys}
    wanted.pop(POLICIES_KEY, None)
    wanted[POLICIES_KEY] = ",".join(names) if policies else at_first(POLICIES_KEY)
    for key, value in wanted.items():
        first = at_first(key)
        before.setdefault(key, first)
        if value is not None:
            spark.conf.set(key, value)
    for key, value in wanted.items():
        if value is None:
            spark.conf.unset(key)
        if value == before[key]:
            del before[key]


@contextmanager
def _refusals_told() -> Iterator[None]:
    """Says what to do where a platform lets a session set no such settings."""
    try:
        yield
    except Exception as error:
        if not _SETTING_REFUSED.search(str(error)):
            raise
        message = (
            f"this session may not change a setting that policies need: {first_line(error)} "
            "Have the policy submitted where this Spark is started: put what `aqepilot conf FILE "
            "--format json` prints into its Spark settings."
        )
        raise NotLiveError(Problem("SETTING_REFUSED", message)) from error


def _with_policies(
    policies: list[Policy], jar: str | None, options: Mapping[str, str], there: Mapping[str, str]
) -> dict[str, str]:
    """Merges policies into a builder's options and what is there without it."""
    base = {**there, **options}
    merged = settings(policies, jar, base)
    submitted = split(there.get(POLICIES_KEY))
    own = [name for name in split(options.get(POLICIES_KEY)) if name not in submitted]
    names = dict.fromkeys([*own, *(policy.name for policy in policies), *submitted])
    if names:
        merged[POLICIES_KEY] = ",".join(names)
    if jar is None:
        merged.pop(EXTENSIONS_KEY, None)
    return merged


def _with(builder: Builder, values: Mapping[str, str]) -> Builder:
    for key, value in values.items():
        builder.config(key, value)  # type: ignore[attr-defined]
    return builder


def _running_without(running: Mapping[str, str]) -> Problem:
    return Problem(
        "SPARK_RUNS_ALREADY",
        f"a Spark without aqepilot runs in this Python already ({EXTENSIONS_KEY} is "
        f"{running.get(EXTENSIONS_KEY) or 'not set'}), and extensions are fixed when Spark starts. "
        "Call configure before the first session is made, or stop that one (spark.stop()) and make "
        "it anew, or submit with what `aqepilot conf` prints; where a platform makes the session, "
        "put that into its Spark settings.",
        EXTENSIONS_KEY,
    )


def _defaults() -> dict[str, str]:
    """Reads the spark-defaults.conf that the driver will start with."""
    spark = jars.installed_spark()
    folder = os.environ.get("SPARK_CONF_DIR") or (spark and spark.home and spark.home / "conf")
    path = Path(folder or "", "spark-defaults.conf")
    return parse_defaults(path.read_text("utf-8")) if folder and path.is_file() else {}


def _submit_args(jar: str) -> dict[str, str]:
    """Reads the settings in PYSPARK_SUBMIT_ARGS."""
    words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    settings: dict[str, str] = {}
    for word, value in pairwise(words):
        if word in ("--conf", "-c") and "=" in value:
            key, _, text = value.partition("=")
            settings[key] = text
        if word == "--jars" and jar not in split(value):
            message = f"it has --jars, which wins over {JARS_KEY}: add {jar} to it."
            raise AqePilotError(Problem("JARS_OVERRULED", message, "PYSPARK_SUBMIT_ARGS"))
    return settings

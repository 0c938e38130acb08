"""Tries what a session may do; the jobs of the test import it, Spark Connect's client too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import aqepilot

POINT = "dynamic_join_selection"
POLICY = "spark.aqepilot.policy.{}." + POINT
GUARD = "spark.aqepilot.guard.max_partitions"
# All that only the submitted configuration may give, by the rows of who_may.toml. The experiment is
# over: the policies of its first arm are asked.
SUBMITTED = {
    "limits": {
        "spark.aqepilot.ask.deadline": "30s",
        "spark.aqepilot.ask.breaker_failures": "9",
        "spark.aqepilot.ask.breaker_time": "9s",
        "spark.aqepilot.python.load_timeout": "90s",
        "spark.aqepilot.python.workers": "2",
        "spark.aqepilot.python.memory": "1g",
        "spark.aqepilot.python.allow_session": "true",
    },
    "record": {
        "spark.aqepilot.decisions.ring_bytes": "1m",
        "spark.aqepilot.decisions.all_sessions": "true",
        "spark.aqepilot.log.facts": "summary",
        "spark.aqepilot.ui": "false",
    },
    "history": {
        "spark.aqepilot.history": "pack.parquet",
        "spark.aqepilot.history.refresh": "60s",
        "spark.aqepilot.history.own": "true",
        "spark.aqepilot.history.learn": "false",
    },
    "fleet": {
        "spark.aqepilot.control": "control.json",
        "spark.aqepilot.control.refresh": "60s",
        "spark.aqepilot.control.unreachable": "enforce",
        "spark.aqepilot.attempt": "2",
        "spark.aqepilot.on_retry": "enforce",
        "spark.aqepilot.session_policies": "allow",
    },
    "experiment": {
        "spark.aqepilot.experiment.name": "tried",
        "spark.aqepilot.experiment.arms": "sql+module+pickled+off:50,spark:50",
        "spark.aqepilot.experiment.unit": "session",
        "spark.aqepilot.experiment.when": "query.job = 'sales'",
        "spark.aqepilot.experiment.salt": "s",
        "spark.aqepilot.experiment.start": "2026-01-01",
        "spark.aqepilot.experiment.end": "2026-01-02",
        "spark.aqepilot.experiment.metric": "wall_ms",
        "spark.aqepilot.experiment.guardrails": "none",
    },
}
UNKNOWN = f"python:pickled:f:{'0' * 64}"
QUERY = "SELECT count(*) FROM range(99) a JOIN range(99) b ON a.id = b.id"


def status(spark: Any, kind: str) -> list[Any]:
    return spark.sql(f"SELECT * FROM aqepilot_status() WHERE kind = '{kind}'").collect()


def is_live(spark: Any, text: str, set_key: Callable[[str, str], None]) -> bool:
    """Whether a policy with this text is asked once its settings are made."""
    set_key(POLICY.format("tried"), text)
    set_key("spark.aqepilot.policies", "tried")
    return [row.value for row in status(spark, "policy")] == ["enforce"]


def is_done(change: Callable[[], Any]) -> bool:
    with contextlib.suppress(Exception):
        change()
        return True
    return False


def guard(spark: Any, value: int, set_key: Callable[[str, str], None]) -> bool:
    """Whether the guard is in force after it was set: a looser one is reported."""
    set_key(GUARD, str(value))
    return not [p for p in status(spark, "problem") if p.name == "GUARD_LOOSENED"]


def allowed(
    spark: Any,
    set_key: Callable[[str, str], None],
    use: Callable[..., Any],
    others_text: str,
    others_session: str,
) -> dict[str, bool]:
    """What the session may do, by the names of who_may.toml.

    Args:
        spark: The session.
        set_key: Sets one of its settings.
        use: Brings a function for it.
        others_text: The text of a function that another session brought.
        others_session: That session's id, in whose decisions there are some.
    """
    may = {
        "sql_policy": is_live(spark, "'SHUFFLE_HASH'", set_key),
        "python_module": is_done(lambda: use("python:os:getpid"))
        or is_live(spark, "python:os:getpid", set_key),
        "python_function": is_done(lambda: use(lambda facts: None)),
        "others_function": is_live(spark, others_text, set_key),
        "tighten_guard": guard(spark, 10, set_key),
        "loosen_guard": guard(spark, 1_000_000, set_key),
    }
    for what, own in SUBMITTED.items():
        may[what] = any(is_done(lambda k=k, v=v: set_key(k, v)) for k, v in own.items())
    is_live(spark, "'SHUFFLE_HASH'", set_key)
    set_key("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.sql(QUERY).collect()
    sessions = {
        row[0] for row in spark.sql("SELECT session_id FROM aqepilot_decisions()").collect()
    }
    may["others_decisions"] = others_session in sessions
    shown = str(status(spark, "python"))
    may["others_functions"] = others_text.split(":")[3] in shown
    set_key("spark.aqepilot.mode", "off")
    modes = [row.value for row in status(spark, "policy")]
    may["switch_off"] = modes == ["off"]
    return may


def use_of(spark: Any) -> Callable[[Any], None]:
    return lambda policy: aqepilot.use(spark, **{POINT: policy})


def other(spark: Any) -> tuple[str, str]:
    """The text of a function that a session brings, and the id of that session's decisions."""

    def theirs(facts: Any) -> Any:
        raise ValueError("theirs")

    aqepilot.use(spark, **{POINT: theirs})
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.sql(QUERY).collect()
    text = spark.conf.get(POLICY.format("session"))
    (own,) = {row[0] for row in spark.sql("SELECT session_id FROM aqepilot_decisions()").collect()}
    return text, own

"""What clients of a server are shown where names and literals match Spark's redaction patterns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATTERN = "sesame_[a-z]+"
HIDDEN = "*********(redacted)"
KEY = "spark.aqepilot.policy"
# The one key falls back to the other.
KEYS = {
    "shadow": "spark.sql.redaction.string.regex",
    "allow": "spark.redaction.string.regex",
}
# Fails on one of the tables, with an error that quotes its name.
TEXT = (
    "CASE WHEN get(left.tables, 0) LIKE '%sesame_ledger' THEN string(int(get(left.tables, 0))) "
    "ELSE 'BROADCAST' END"
)
COLUMNS = "tables, facts, policy, reason, answer, detail, spark_strategy, subject"
OF_THE_SESSION = (
    *("RESET spark.aqepilot.mode", f"RESET {KEY}.own.mode", f"RESET {KEY}.own.when"),
    f"SET {KEY}.wrong.join_selection=sesame_column = 1",
    "SET spark.aqepilot.policies=own,wrong",
    "CREATE TABLE IF NOT EXISTS sesame_ledger USING parquet AS "
    "SELECT id, 'sesame_word' AS note FROM range(100)",
    "CREATE TABLE IF NOT EXISTS sesame_items USING parquet AS SELECT id FROM range(50)",
    *(
        f"SELECT 'hidden rows', count(*) FROM {left} JOIN {right} USING (id) "
        "WHERE note = 'sesame_word'"
        for left, right in (("sesame_items", "sesame_ledger"), ("sesame_ledger", "sesame_items"))
    ),
    f"SELECT 'record', to_json(collect_list(struct({COLUMNS}))) FROM aqepilot_decisions() "
    "WHERE facts LIKE '%redacted%' OR facts LIKE '%sesame%'",
    "SELECT 'status', to_json(collect_list(struct(kind, name, value, detail))) "
    "FROM aqepilot_status()",
)


def conf(text: str, events: Path) -> dict[str, str]:
    """The settings of a server whose clients are shown what is hidden, with its event log."""
    if text not in KEYS:
        return {}
    events.mkdir(parents=True)
    return {
        KEYS[text]: PATTERN,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }


def assert_shown(rows: Sequence[Sequence[str]]) -> None:
    """Looks at what a client was given of `OF_THE_SESSION`: all is told, and nothing hidden."""
    shown: dict[str, str] = {row[0]: row[1] for row in rows}
    assert [row[1] for row in rows if row[0] == "hidden rows"] == ["50", "50"]
    assert "sesame_" not in shown["record"] + shown["status"]
    made = [d for d in json.loads(shown["record"]) if d["policy"] == "own"]
    _assert_decided(made)
    status = json.loads(shown["status"])
    (text,) = (r["detail"] for r in status if r["name"] == "own.join_selection")
    assert f"LIKE '%{HIDDEN}'" in json.loads(text)["text"]
    assert any(HIDDEN in r["detail"] for r in status if r["kind"] == "problem"), status


def assert_logged(events: Path, clients: int) -> None:
    """Looks at what the server logged of the decisions of so many clients."""
    (log,) = events.iterdir()
    ours = [line for line in log.read_text("utf-8").splitlines() if '"io.aqepilot' in line[:40]]
    assert not [line for line in ours if "sesame_" in line]
    parsed = [json.loads(line) for line in ours]
    made = [e for e in parsed if HIDDEN in (e.get("tables") or "") and e.get("policy") == "own"]
    assert len({e["sessionId"] for e in made}) == clients
    _assert_decided(made)
    loaded = [e for e in parsed if e["Event"].endswith("PolicyLoaded")]
    assert any(f"LIKE '%{HIDDEN}'" in e["text"] for e in loaded)
    assert any(HIDDEN in e["text"] and HIDDEN in (e.get("error") or "") for e in loaded)


def _assert_decided(made: Sequence[dict[str, Any]]) -> None:
    assert {d["reason"] for d in made} == {"SHADOW", "EVALUATION_FAILED"}
    assert all(HIDDEN in d["tables"] for d in made)
    facts = [json.loads(d["facts"]) for d in made if d["facts"]]
    conditions = str([f[side].get("filters") for f in facts for side in ("left", "right")])
    assert HIDDEN in conditions, conditions  # their literal
    failed = next(d for d in made if d["reason"] == "EVALUATION_FAILED")
    assert HIDDEN in failed["detail"]

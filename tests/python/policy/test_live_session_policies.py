"""What a JDBC and a Spark Connect client's own policies may do, and what both are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

import redacted
import servers
import tiers

pytestmark = tiers.on("3.5")

KEY = "spark.aqepilot.policy"
CONF = {
    "spark.aqepilot.policies": "own",
    f"{KEY}.own.join_selection": redacted.TEXT,
    f"{KEY}.own.mode": "shadow",
    f"{KEY}.spare.join_selection": "'BROADCAST'",
    "spark.aqepilot.guard.max_partitions": "500",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
QUERY = "SELECT 'rows', count(*) FROM range(1000) a JOIN range(500) b ON a.id = b.id"


def modes(step: str) -> str:
    return (
        f"SELECT '{step}', concat_ws(',', sort_array(collect_list(concat(name, '=', value)))) "
        "FROM aqepilot_status() WHERE kind = 'policy'"
    )


# The session's own; the submitted one raised, and with another condition; one not listed.
STATEMENTS = (
    *("SELECT 'others', count(*) FROM aqepilot_decisions()", modes("submitted")),
    *("SET spark.aqepilot.policies=mine", f"SET {KEY}.mine.join_selection='SHUFFLE_HASH'"),
    *(modes("mine"), QUERY),
    "SELECT 'decided', concat_ws(',', sort_array(collect_set(concat(policy, ' ', reason)))) "
    "FROM aqepilot_decisions() WHERE policy IS NOT NULL",
    *("SET spark.aqepilot.policies=own", f"SET {KEY}.own.mode=enforce", modes("raised")),
    *(f"SET {KEY}.own.when=true", modes("another condition")),
    *("SET spark.aqepilot.policies=spare", modes("not listed")),
    *("SET spark.aqepilot.mode=off", modes("lowered")),
    "SET spark.aqepilot.session_policies=allow",
    "SET spark.aqepilot.guard.max_partitions=100000",
    "SELECT 'guard', count(*) FROM aqepilot_status() WHERE name = 'GUARD_LOOSENED'",
)
EXPECTED = {
    "deny": {
        "submitted": "own.join_selection=shadow",
        "mine": "mine.join_selection=off",
        "decided": "",
        "raised": "own.join_selection=shadow",
        "another condition": "own.join_selection=off",
        "not listed": "spare.join_selection=off",
    },
    "shadow": {
        "submitted": "own.join_selection=shadow",
        "mine": "mine.join_selection=shadow",
        "decided": "mine SHADOW",
        "raised": "own.join_selection=shadow",
        "another condition": "own.join_selection=shadow",
        "not listed": "spare.join_selection=shadow",
    },
    "allow": {
        "submitted": "own.join_selection=shadow",
        "mine": "mine.join_selection=enforce",
        "decided": "mine APPLIED",
        "raised": "own.join_selection=enforce",
        "another condition": "own.join_selection=enforce",
        "not listed": "spare.join_selection=enforce",
    },
}
EACH = {"lowered": "spare.join_selection=off", "others": "0", "rows": "500", "guard": "1"}


@pytest.mark.skipif(not servers.HAS_CONNECT, reason="no jar of Spark Connect: make env")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "allowed",
    [
        *("allow", "denied"),
        *(pytest.param(allowed, marks=tiers.LONG) for allowed in ("deny", "shadow")),
    ],
)
def test_clients_may_do_what_is_submitted_for_sessions(allowed: str, tmp_path: Path) -> None:
    """They are shown nothing that Spark's patterns hide, and no other's decisions."""
    expected = EXPECTED.get(allowed, EXPECTED["deny"]) | EACH  # what cannot be read denies
    conf = CONF | redacted.conf(allowed, tmp_path / "events")
    conf["spark.aqepilot.session_policies"] = allowed
    statements = STATEMENTS + redacted.OF_THE_SESSION * (allowed in redacted.KEYS)
    clients = (servers.by_jdbc, servers.by_connect)
    with servers.running(tmp_path / "server", conf) as s:
        for client in clients:
            rows = client(s, statements)
            shown = {row[0]: row[1] for row in rows if row[0] in expected}
            assert shown == expected
            errors = " ".join(row[1] for row in rows if row[0] == "ERROR")
            assert "session_policies" in errors
            if allowed in redacted.KEYS:
                redacted.assert_shown(rows)
        if allowed in redacted.KEYS:
            redacted.assert_logged(tmp_path / "events", len(clients))

"""A decision as it was recorded."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from datetime import datetime
from typing import Any, NamedTuple


class Decision(NamedTuple):
    """One answer of a policy, and what came of it.

    Attributes:
        time: When it was made, in the session's time zone.
        decision_id: Unique in the driver, rising.
        session_id: The Spark session whose query it was.
        execution_id: Spark's id of the query's execution, as in its UI; null before there is one.
        fingerprint: The same for the same query on any day, whatever the policy; null when it
            could not be computed.
        point: The decision point.
        join_id: The join, stable for the query's life; null at points that are not about joins.
        side: ``left`` or ``right``; null where it is about no side.
        tables: The tables that are read beneath, by side for a join.
        facts_id: The facts' id; decisions on equal facts share it.
        facts_json: The facts as recorded; null when another decision of this `facts_id` has them.
            See `facts`.
        policy: Whose answer it was; null when no policy had one.
        revision: Of that policy at this point.
        mode: ``shadow`` or ``enforce``; null when no policy had an answer.
        answer: What the policy said, a struct as JSON without its nulls; null is Spark's own
            choice.
        spark_answer: What Spark's own rule said; null is nothing.
        spark_strategy: What Spark would have run; null when that cannot be told.
        applied: Whether the answer was put into the plan.
        reason: Why, or why not, as a code (see the catalog).
        detail: The reason's particulars; null when there are none.
        asked_us: How long asking took, all facts included, also those that no policy read, in
            microseconds.
        fate: ``adopted``, ``refused_by_cost``, ``no_change``, ``superseded`` or ``gone``; null
            while the query runs, when it failed and when the answer was not applied.
        final_strategy: What ran; null while the query runs and when it cannot be told.
        subject: What the decision is about, e.g. ``join 3, left side``: unique in its query at
            its point; null when nobody could be asked.
    """

    time: datetime
    decision_id: int
    session_id: str
    execution_id: int | None
    fingerprint: str | None
    point: str
    join_id: int | None
    side: str | None
    tables: str | None
    facts_id: str
    facts_json: str | None
    policy: str | None
    revision: str | None
    mode: str | None
    answer: str | None
    spark_answer: str | None
    spark_strategy: str | None
    applied: bool
    reason: str
    detail: str | None
    asked_us: float
    fate: str | None
    final_strategy: str | None
    subject: str | None

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that the policy saw, packed arrays unpacked; empty when not recorded here."""
        unpacked: dict[str, Any] = unpack(json.loads(self.facts_json)) if self.facts_json else {}
        return unpacked


COLUMNS = tuple("facts" if name == "facts_json" else name for name in Decision._fields)


def unpack(value: Any) -> Any:
    """Returns facts with their packed arrays as lists; those that the log lacks are null.

    >>> unpack({"a": {"packed": "int64-le+zlib+base64", "n": 1, "data": "eJzjZIAAAABQAAo="}})
    {'a': [9]}
    """
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "left_out" in value:
        return None
    if "packed" not in value:
        return {key: unpack(item) for key, item in value.items()}
    if value["packed"] != "int64-le+zlib+base64":
        raise ValueError(
            f"facts packed as {value['packed']!r}: this aqepilot is too old to read them"
        )
    return list(struct.unpack(f"<{value['n']}q", zlib.decompress(base64.b64decode(value["data"]))))

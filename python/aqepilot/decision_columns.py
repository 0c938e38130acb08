"""The columns of a recorded decision.

Generated from catalog.json: `make catalog`.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class DecisionColumns(NamedTuple):
    """The columns of `aqepilot_decisions()`; its `facts` are `facts_json`."""

    time: datetime
    """When it was made, in the session's time zone."""
    decision_id: int
    """Unique in the driver, rising."""
    session_id: str
    """The Spark session whose query it was."""
    execution_id: int | None
    """Spark's id of the query's execution, as in its UI; null before there is one."""
    fingerprint: str | None
    """The same for the same query on any day, whatever the policy; null when it could not be
    computed.
    """
    point: str
    """The decision point."""
    join_id: int | None
    """The join, stable for the query's life; null at points that are not about joins."""
    side: str | None
    """`left` or `right`; null where it is about no side."""
    tables: str | None
    """The tables that are read beneath, by side for a join; null when they are not known."""
    facts_id: str
    """The facts' id; decisions on equal facts share it."""
    facts_json: str | None
    """The facts as recorded, as JSON; null when another decision of this `facts_id` has them."""
    policy: str | None
    """Whose answer it was; null when no policy had one."""
    revision: str | None
    """The revision of that policy at this point; null when no policy had one."""
    mode: str | None
    """`shadow` or `enforce`; null when no policy had an answer."""
    answer: str | None
    """The policy's answer, a struct as JSON without its nulls; null is Spark's own choice."""
    spark_answer: str | None
    """The answer of Spark's own rule; null where it has none."""
    spark_strategy: str | None
    """What Spark would have run; null when that cannot be told."""
    applied: bool
    """Whether the answer was put into the plan."""
    reason: str
    """Why the answer was applied or not, as a code: see the reasons."""
    detail: str | None
    """More about the reason, in words; null when there is no more."""
    asked_us: float
    """How long the query waited for the answers and for facts, in microseconds."""
    fate: str | None
    """`adopted`, `refused_by_cost`, `no_change`, `superseded` or `gone`; null while the query runs,
    when it failed and when the answer was not applied.
    """
    final_strategy: str | None
    """What ran; null while the query runs and when it cannot be told."""
    subject: str | None
    """What the decision is about, e.g. `join 3, left side`: unique in its query at its point; null
    when nobody could be asked.
    """

"""A decision as it was recorded."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

from aqepilot import texts
from aqepilot.decision_columns import DecisionColumns
from aqepilot.display import Column, Folded, Listed, Picture, Table, bars, fields, folded, indented
from aqepilot.display import html as as_html

# What came of decisions, in the order of a report's colours.
FATES = (
    "adopted",
    "no_change",
    "refused_by_cost",
    "superseded",
    "gone",
    "not known",
    "not applied",
)


class Decision(DecisionColumns):
    """One answer of a policy, and what came of it.

    The attributes are the columns of `aqepilot_decisions()`, with `facts_json` for `facts`.
    """

    __slots__ = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that the policy saw, packed arrays unpacked; empty when not recorded here."""
        unpacked: dict[str, Any] = unpack(json.loads(self.facts_json)) if self.facts_json else {}
        return unpacked

    @property
    def outcome(self) -> str:
        """What came of it: a word of `FATES`."""
        if not self.applied:
            return "not applied"
        return self.fate if self.fate in FATES else "not known"

    def _repr_html_(self) -> str | None:
        facts = self.facts
        values = [(name, getattr(self, name)) for name in Decision._fields if name != "facts_json"]
        cells = [(name, None if v is None else folded(str(v))) for name, v in values]
        if facts:
            cells.append(("facts", Folded("unfold", indented(facts))))
        table = fields(f"Decision {self.decision_id} at {self.point}", cells)
        return as_html(table, *_partitions(facts))


def _partitions(facts: dict[str, Any]) -> list[Picture]:
    """The sizes of partitions among facts, each shuffle's as a picture."""
    shown = []
    for name, group in facts.items():
        sizes = group.get("bytes_by_partition_id") if isinstance(group, dict) else None
        if sizes and all(isinstance(size, int) for size in sizes):
            most, median = max(sizes), sorted(sizes)[len(sizes) // 2]
            title = f"Partitions of {name}: {texts.plural(len(sizes), 'partition')}"
            picture = bars.sizes(sizes, most, median)
            shown.append(Picture(title, picture, texts.size(most), texts.size(median)))
    return shown


class Decisions(Listed[Decision]):
    """Decisions, oldest first, which show themselves as a table of the newest."""

    __slots__ = ()

    def _table(self, most: int) -> Table:
        newest = self[-most:]
        earlier = f"; the newest {len(newest):,} of them" if len(newest) < len(self) else ""
        counts = dict.fromkeys(FATES, 0)
        for one in self:
            counts[one.outcome] += 1
        # Facts are recorded once for all decisions that saw them.
        return Table(
            f"{texts.plural(len(self), 'decision')} of policies{earlier}",
            _COLUMNS,
            [_row(one) for one in newest],
            bars.shares([(name.replace("_", " "), n) for name, n in counts.items()]),
            [name.replace("_", " ") for name in FATES],
        )


_COLUMNS = (
    Column("Id", is_number=True),
    Column("Query", is_number=True),
    Column("Point"),
    Column("About"),
    Column("Policy"),
    Column("Answer"),
    Column("Spark's own"),
    Column("Outcome"),
    Column("Ran", in_terminal=False),
    Column("Asked", is_number=True, in_terminal=False),
    Column("Facts", in_terminal=False),
)


def _row(one: Decision) -> tuple[str | Folded | Any | None, ...]:
    about = ", ".join(part for part in (one.subject, one.tables) if part)
    applied = one.outcome.replace("_", " ")
    return (
        str(one.decision_id),
        None if one.execution_id is None else str(one.execution_id),
        one.point,
        folded(about),
        f"{one.policy} ({one.mode})" if one.policy else "none had an answer",
        folded(one.answer),
        folded(one.spark_strategy or one.spark_answer),
        applied if one.applied else folded(": ".join(filter(None, (one.reason, one.detail)))),
        folded(one.final_strategy),
        None if one.asked_us is None else f"{one.asked_us:,.0f} µs",
        Folded("facts", indented(one.facts)) if one.facts_json else None,
    )


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

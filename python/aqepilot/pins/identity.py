"""What tells a decision from the others of its query, on each run and on each Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# Points that decide on a join: the facts of which two sides name it.
SIDES = {
    "join_selection": ("left", "right"),
    "skew_join": ("left", "right"),
    "dynamic_join_selection": ("side", "other"),
}
# Points that decide on shuffles that are read together: the facts that name these.
SHUFFLES = {"shuffle_partitions": "shuffles", "partition_coalescing": "shuffle"}
# Nothing names a comparison of two plans.
UNNAMED = ("cost_evaluation",)
# At these, a join without a side of its own has the same rows when its sides change places.
_TWO_SIDED = ("INNER", "CROSS")


class Identity(NamedTuple):
    """Names a decision among those of its query.

    Attributes:
        point: The decision point.
        signatures: Of a join those of its sides: left and right, or the side that is asked about
            and the other. Of a chain those of its relations, in Spark's own order. Of shuffles
            those of the group, sorted. Empty where a query has one such decision: a write.
        can_swap: Whether the join is the same one when left and right change places.
    """

    point: str
    signatures: tuple[str, ...]
    can_swap: bool = False

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """Equal for two identities that name the same decision."""
        by_side = self.point in SIDES and not self.can_swap
        return self.point, self.signatures if by_side else tuple(sorted(self.signatures))


def identity_of(point: str, facts: Mapping[str, Any]) -> Identity | None:
    """Returns what names a decision on each run.

    Args:
        point: The decision point.
        facts: The facts of the decision, as `Decision.facts` has them.

    Returns:
        Null where nothing names it: at cost_evaluation, where Spark's plan could not be read, and
        where an aqepilot made the log that knew no signatures.

    >>> identity_of("shuffle_partitions", {"shuffles": {"signatures": ["2b", "1a"]}})
    Identity(point='shuffle_partitions', signatures=('1a', '2b'), can_swap=False)
    """
    names: tuple[Any, ...]
    if point in UNNAMED:
        return None
    if point in SIDES:
        names = tuple((facts.get(side) or {}).get("signature") for side in SIDES[point])
        kind = (facts.get("join") or {}).get("type")
        swaps = point != "dynamic_join_selection" and kind in _TWO_SIDED
        return Identity(point, names, swaps) if all(names) else None
    if point == "join_reorder":
        names = tuple((facts.get("chain") or {}).get("signatures") or ())
        return Identity(point, names) if names else None
    if point in SHUFFLES:
        names = tuple(sorted((facts.get(SHUFFLES[point]) or {}).get("signatures") or ()))
        return Identity(point, names) if names else None
    return Identity(point, ())

"""Which of the strategies that a join was planned with is the one that ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

Join = TypeVar("Join")


def as_ran(
    planned: Mapping[Join, Sequence[str]], last: Mapping[Join, int], ran: Iterable[str]
) -> dict[Join, int]:
    """Returns the place, in a join's list, of the strategy by which it ran.

    AQE plans anew while a query runs, and keeps the plan that it had if the new one has more
    shuffles (`spark.sql.adaptive.customCostEvaluatorClass`). So the last strategy that a join was
    planned with may not have run. Of the plan that ran only the strategies of all joins are known.
    Where it has a join's last strategy less often, and an earlier one of the join more often, than
    the joins' last strategies have, the join ran by the earlier one.

    Args:
        planned: The strategies that each join was planned with, the oldest first.
        last: The place of the last one.
        ran: The strategies of all joins of the plan that ran.

    >>> as_ran({"a": ["SortMergeJoin", "BroadcastHashJoin"]}, {"a": 1}, ["SortMergeJoin"])
    {'a': 0}
    """
    in_plan = Counter(ran)
    places = dict(last)
    counted = Counter(planned[join][place] for join, place in last.items())
    for join, place in last.items():
        mine = planned[join][place]
        for other in reversed(range(len(planned[join]))):
            theirs = planned[join][other]
            if counted[mine] > in_plan[mine] and in_plan[theirs] > counted[theirs]:
                places[join] = other
                counted.update({mine: -1, theirs: 1})
                break
    return places

"""What a comparison of two logs came to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot.analysis.upgrade import shown
from aqepilot.analysis.upgrade.compared import Change, Pair
from aqepilot.analysis.upgrade.settings import SparkChange
from aqepilot.analysis.upgrade.times import Difference
from aqepilot.display import Table, html

if TYPE_CHECKING:
    from aqepilot.analysis.prices import Prices

# What `--fail-if` takes: words that are attributes of `Upgrade`.
CONDITIONS = ("worse", "changed", "harms")


class Compared(NamedTuple):
    """A query that both logs have.

    Attributes:
        pair: Its runs.
        changes: What changed in its plan.
        times: How its task times compare.
        verdict: ``worse`` or ``better``, where its task time surely is; ``same`` where it is
            surely within the margin; else ``not known``.
    """

    pair: Pair
    changes: tuple[Change, ...]
    times: Difference
    verdict: str

    @property
    def fingerprint(self) -> str | None:
        """Of the runs before."""
        return self.pair.before.fingerprint

    def data(self) -> dict[str, Any]:
        """Returns it as values of JSON."""
        before, after = self.pair.before, self.pair.after
        return {
            "fingerprint": before.fingerprint,
            "fingerprint_after": after.fingerprint,
            "description": before.description,
            "runs": [before.runs, after.runs],
            "slot_ms": [before.slot_ms, after.slot_ms],
            "verdict": self.verdict,
            "times": self.times._asdict(),
            "changes": [one._asdict() for one in self.changes],
        }


class Upgrade(NamedTuple):
    """What is different after: an upgrade of Spark, or some weeks.

    Attributes:
        before: Spark's versions in the log before.
        after: Spark's versions in the log after.
        queries: Those that both logs have, most task time first.
        settings: What changed its name, its default or its meaning between these releases.
        only_before: Descriptions, or keys, of queries that only the log before has.
        only_after: The same of the log after.
        margin: Which share of task time counts as no difference.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    queries: tuple[Compared, ...]
    settings: tuple[SparkChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    margin: float

    @property
    def worse(self) -> tuple[Compared, ...]:
        """The queries that are surely slower."""
        return tuple(one for one in self.queries if one.verdict == "worse")

    @property
    def better(self) -> tuple[Compared, ...]:
        """The queries that are surely faster."""
        return tuple(one for one in self.queries if one.verdict == "better")

    @property
    def changed(self) -> tuple[Compared, ...]:
        """The queries whose plan is another one."""
        return tuple(one for one in self.queries if one.changes)

    @property
    def harms(self) -> tuple[SparkChange, ...]:
        """What jobs set to no effect any more."""
        return tuple(one for one in self.settings if one.harms)

    @property
    def slot_ms(self) -> tuple[float, float]:
        """A mean run of each query, summed, before and after, milliseconds."""
        return (
            sum(one.pair.before.slot_ms for one in self.queries),
            sum(one.pair.after.slot_ms for one in self.queries),
        )

    def failed(self, conditions: Iterable[str]) -> list[str]:
        """Returns those of some words of `CONDITIONS` that are true here."""
        return [word for word in dict.fromkeys(conditions) if getattr(self, word)]

    def data(self, prices: Prices | None = None) -> dict[str, Any]:
        """Returns it as values of JSON."""
        slots = self.slot_ms
        money = {}
        if prices:
            money = {"currency": prices.currency, "cost": [prices.cost(ms) for ms in slots]}
        return {
            "before": list(self.before),
            "after": list(self.after),
            "margin": self.margin,
            "slot_ms": list(slots),
            **money,
            "queries": [one.data() for one in self.queries],
            "settings": [one._asdict() for one in self.settings],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }

    def tables(self, prices: Prices | None = None, most: int = 50) -> list[Table]:
        """Returns it as tables: queries, then settings and rules."""
        return shown.tables(self, prices, most)

    def _repr_html_(self) -> str | None:
        return html(*self.tables())

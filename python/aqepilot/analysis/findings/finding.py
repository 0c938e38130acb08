"""What a finding is: its columns, its sentence, and a policy or a change that helps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from aqepilot import recipes
from aqepilot.policies import Policy, sql_text, when_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Sources(NamedTuple):
    """The rows of a log that findings are made of; each is in the cache.

    Attributes:
        queries: Queries with `key`, which stands for the query among all runs, and `cores`.
        stages: Stages of queries, with the `key`, `cores` and `join_nodes` of the query.
        decisions: Decisions of queries, with some facts as the struct `f`.
        sub_plans: Sub-plans of queries, with the `key`, `cores` and `joins` of the query.
    """

    queries: DataFrame
    stages: DataFrame
    decisions: DataFrame
    sub_plans: DataFrame


class Runs(NamedTuple):
    """The runs of a query that a finding is about.

    Attributes:
        key: As in `costs`.
        fingerprint: Null of queries without a decision.
        description: Of one of the runs; null when there is none.
        app_name: Of one of the applications.
        number: How many runs the finding is about.
        stake_ms: The slot time that it is about, milliseconds: the most that could be had.
        applications_ms: The slot time of all queries of the applications that had these runs.
    """

    key: str
    fingerprint: str | None
    description: str | None
    app_name: str | None
    number: int
    stake_ms: int
    applications_ms: int


class SuggestedPolicy(NamedTuple):
    """A policy to try.

    Attributes:
        point: Its decision point, the first one where it has several.
        text: The policy file, in shadow mode.
    """

    point: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Finding(ABC):
    """A finding: a class for each kind, whose fields are the figures of the worst run.

    Attributes:
        runs: The runs that it is about.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    # What some stage of a log with such a finding has, in SQL; empty for what needs no stage.
    needed_stage: ClassVar[str] = ""
    # The point whose facts it needs; empty for none.
    needed_point: ClassVar[str] = ""
    # Whether half of the runs have to have it: else it may be what a cold start took once.
    is_of_most_runs: ClassVar[bool] = False
    # Whether it is one of sub-plans, with a policy that answers where facts have their history.
    needs_history: ClassVar[bool] = False

    runs: Runs

    @staticmethod
    @abstractmethod
    def rows(sources: Sources) -> DataFrame:
        """Returns a row for each query that has it.

        Its columns: `log`, `execution_id`, `stake_ms`, and `evidence`, a struct of the fields.
        """

    @abstractmethod
    def sentence(self) -> str:
        """Returns the figures as sentences."""

    def policy(self) -> SuggestedPolicy | None:
        """Returns a policy to try; null where none helps."""
        return None

    def change(self) -> str | None:
        """Returns a change of the job; null where a policy helps."""
        return None

    def recipe(self, name: str) -> tuple[str, str]:
        """Returns the point and the text of a recipe of one point."""
        ((point, text),) = recipes.get(name).points.items()
        return point, text

    def policy_file(
        self,
        point: str,
        text: str,
        is_by_application: bool = False,
        also: Mapping[str, str] = MappingProxyType({}),
    ) -> SuggestedPolicy:
        """Returns a policy in shadow mode for these runs alone.

        Args:
            point: The decision point.
            text: The policy's text there.
            is_by_application: Whether it is for the whole application: what is cached is planned
                outside of the queries that read it.
            also: Texts at further points, by point, without which the first one gains little.
        """
        name = f"{self.kind}_{(self.runs.fingerprint or 'of_application')[:14]}"
        if self.runs.fingerprint is None or is_by_application:
            when = f"query.app_name = {sql_text(self.runs.app_name or '')}"
        else:
            when = when_query([self.runs.fingerprint])
        title = f"{self.title[0].upper()}{self.title[1:]}."
        comment = f'{title} Recorded only, until its mode is "enforce".'
        made = Policy(name=name, mode="shadow", when=when, points={point: text, **also})
        return SuggestedPolicy(point, made.to_toml(comment))

"""A policy that may help a job, and the queries that it is for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Literal

from pydantic import BaseModel, ConfigDict

from aqepilot.policies import Policy, when_query


class Candidate(BaseModel):
    """A policy that may help a job.

    Attributes:
        job: The job.
        shape: What the job has: a finding of `aqepilot suggest`, or ``any``.
        recipe: What the policy is made by: a recipe, or the name of its file.
        source: Where it is from.
        text: The policy file.
        fingerprints: The queries that it is for, in the place of its text's `when`; empty for
            those that this names.
        evidence: Why, in sentences; of several queries, that of the one with most at stake.
        stake_ms: The most that it could save a day, in milliseconds of slots; 0 if not known.
    """

    model_config = ConfigDict(frozen=True)

    job: str
    shape: str
    recipe: str
    source: str
    text: str
    fingerprints: tuple[str, ...] = ()
    evidence: str = ""
    stake_ms: float = 0.0

    @property
    def id(self) -> str:
        """The trial's name: the same for the same texts on the same queries of a job."""
        return _id(self.job, self.text, self.fingerprints)

    @property
    def texts(self) -> dict[str, str]:
        """Its texts by point, the same whatever queries it is for."""
        return _named("policy", "enforce", self.text, ()).points

    @property
    def points(self) -> tuple[str, ...]:
        """The decision points at which it decides.

        Raises:
            PolicyError: The file is no policy.
        """
        return tuple(self.texts)

    @property
    def why(self) -> str:
        """The evidence, with the number of queries that it is for where there are several."""
        queries = len(self.fingerprints)
        more = f" {queries} queries of the job have the same." if queries > 1 else ""
        return self.evidence + more

    def also(self, other: Candidate) -> Candidate:
        """Returns the same for the queries of another one, too, with the stakes of both."""
        return self.model_copy(
            update={
                "fingerprints": tuple(sorted({*self.fingerprints, *other.fingerprints})),
                "stake_ms": self.stake_ms + other.stake_ms,
            }
        )

    def policy(self, name: str, mode: Literal["shadow", "enforce"]) -> Policy:
        """Returns the policy under a name, for its queries."""
        return _named(name, mode, self.text, self.fingerprints)

    def untried(self, tried: Iterable[Candidate]) -> Candidate | None:
        """Returns the same for those of its queries for which its texts were not tried.

        Null where there are none; itself where its text names the queries.
        """
        if not self.fingerprints:
            return self
        queries = {
            query
            for other in tried
            if other.job == self.job and other.texts == self.texts
            for query in other.fingerprints
        }
        left = tuple(one for one in self.fingerprints if one not in queries)
        return self.model_copy(update={"fingerprints": left}) if left else None


@lru_cache(100_000)
def _id(job: str, text: str, fingerprints: tuple[str, ...]) -> str:
    policy = _named("policy", "enforce", text, fingerprints)
    texts = [f"{point}={policy.revision(point)}" for point in sorted(policy.points)]
    return sha256("|".join([job, *texts]).encode("utf-8", "replace")).hexdigest()[:12]


@lru_cache(10_000)
def _named(
    name: str, mode: Literal["shadow", "enforce"], text: str, fingerprints: tuple[str, ...]
) -> Policy:
    read = Policy.from_toml(text)
    when = when_query(fingerprints) if fingerprints else read.when
    return Policy(name=name, mode=mode, when=when, points=read.points)

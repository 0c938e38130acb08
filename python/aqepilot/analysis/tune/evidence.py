"""What a search has tried and measured, as a file: its state while it runs, its evidence after."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from aqepilot.analysis.bench.pairs import log_ratio, verdict_of
from aqepilot.analysis.intervals import Interval, mean_interval, observations_needed
from aqepilot.errors import AqePilotError, Problem
from aqepilot.pins import Identity, Pin

Outcome = Literal["ran", "timed_out", "failed", "rows_differ", "no_effect"]
# So many pairs say whether more of them could.
_FEW = 8
Verdict = Literal["faster", "slower", "same", "open", "broken"]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Decided(_Model):
    """An answer for one decision of the query.

    Attributes:
        point: The decision point.
        signatures: Of what the decision is about, which name it on each run.
        can_swap: Whether its two sides may change places.
        answer: In Python's words: a word, a number, the fields that are not null, an order.
        about: The tables, for a reader.
    """

    point: str
    signatures: tuple[str, ...]
    can_swap: bool = False
    answer: Any
    about: str = ""

    @property
    def identity(self) -> Identity:
        """The decision."""
        return Identity(self.point, self.signatures, self.can_swap)

    @property
    def pin(self) -> Pin:
        """The answer as a policy gives it."""
        return Pin(self.identity, self.answer, about=" ".join(self.about.split()))

    @property
    def text(self) -> str:
        """The answer, for a reader."""
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)


class Proposal(_Model):
    """What a searcher wants to see run.

    Attributes:
        answers: One for each decision that is not Spark's.
        came_from: A recipe, or the decision point at which it differs from what was tried before.
    """

    answers: tuple[Decided, ...]
    came_from: str

    @property
    def key(self) -> str:
        """Equal for proposals that answer the same."""
        return key_of(self.answers)


class Choice(_Model):
    """A decision of the query, and what may be answered.

    Attributes:
        point: The decision point.
        signatures: As `Decided` has them.
        can_swap: As `Decided` has it.
        about: The tables, for a reader.
        size_bytes: Of the largest thing it is about, as far as it is known; 0 where it is not.
        answers: Those that are legal and not Spark's own, most different first.
    """

    point: str
    signatures: tuple[str, ...]
    can_swap: bool = False
    about: str = ""
    size_bytes: int = 0
    answers: tuple[Any, ...] = ()

    @property
    def identity(self) -> Identity:
        """The decision."""
        return Identity(self.point, self.signatures, self.can_swap)

    def decided(self, answer: Any) -> Decided:
        """Returns this choice with an answer."""
        return Decided(
            point=self.point,
            signatures=self.signatures,
            can_swap=self.can_swap,
            answer=answer,
            about=self.about,
        )

    def proposal(self, answer: Any) -> Proposal:
        """Returns what a searcher proposes to try this answer alone."""
        return Proposal(answers=(self.decided(answer),), came_from=self.point)


def key_of(answers: Sequence[Decided]) -> str:
    """Returns a text that is equal for equal answers, in any order."""
    return json.dumps(sorted(json.dumps([a.identity.key, a.answer]) for a in answers))


class Try(_Model):
    """A proposal that was run.

    Attributes:
        proposal: The answers.
        outcome: ``ran``; ``timed_out``, when it took longer than what was known to be possible;
            ``failed``; ``rows_differ`` from plain Spark's; or ``no_effect``: no answer changed a
            plan.
        first_ms: Wall time of its first run, which compiles code; null where it has none.
        pairs: Wall times of runs that stood side by side: plain Spark's, its own.
        error: What it failed with.
    """

    proposal: Proposal
    outcome: Outcome
    first_ms: float | None = None
    pairs: tuple[tuple[float, float], ...] = ()
    error: str | None = None

    @property
    def log_ratio(self) -> float:
        """Mean logarithm of its time over plain Spark's; infinity where it cannot win."""
        if self.outcome != "ran" or not self.pairs:
            return math.inf
        return statistics.fmean(log_ratio(*pair) for pair in self.pairs)


class Measured(_Model):
    """Pairs that were run after the choice was made.

    Attributes:
        pairs: Wall times: plain Spark's, the tuned plan's.
        margin: How little counts as the same, as a share of the time.
        error: What the tuned plan failed with; null when it did not.
    """

    pairs: tuple[tuple[float, float], ...] = ()
    margin: float = 0.03
    error: str | None = None

    @property
    def log_ratio(self) -> Interval:
        """Mean logarithm of the tuned time over plain Spark's; holds after any number of pairs."""
        return mean_interval([log_ratio(*pair) for pair in self.pairs])

    @property
    def verdict(self) -> Verdict:
        """As for `aqepilot.bench`."""
        return "broken" if self.error else verdict_of(self.log_ratio, self.margin)

    def may_be_faster(self, rounds: int) -> bool:
        """Whether it would be clear after so many pairs that it is faster, if they went on so."""
        ratios = [log_ratio(*pair) for pair in self.pairs]
        if len(ratios) < _FEW:
            return True
        mean, sd = statistics.fmean(ratios), statistics.stdev(ratios)
        return mean < 0 and observations_needed(mean, sd, rounds) is not None

    @property
    def plain_ms(self) -> float:
        """Median time of plain Spark."""
        return statistics.median(plain for plain, _ in self.pairs)

    @property
    def tuned_ms(self) -> float:
        """Median time with the answers."""
        return statistics.median(tuned for _, tuned in self.pairs)


class Evidence(_Model):
    """All of a search.

    Attributes:
        version: Of this file's form.
        query: The name of the query.
        fingerprints: Of it.
        spark_version: The Spark that ran it.
        slots: Tasks that run at once there.
        has_same_rows: Whether rows were compared; false where plain Spark's differ from run to run.
        plain_ms: The shortest run of plain Spark before the search.
        choices: The decisions, and what may be answered.
        starts: What the searcher begins with: answers of recipes and of history.
        tries: What was run, in its order.
        fresh: The winner, measured again; null without a winner.
        held_out: The winner on other data; null where there is none.
        winner: Its place among the tries, from 0; null without one.
        search_ms: Wall time of everything.
        is_finished: Whether the search has come to its end.
    """

    version: Literal[1] = 1
    query: str
    fingerprints: tuple[str, ...] = ()
    spark_version: str = ""
    slots: int = 1
    has_same_rows: bool = True
    plain_ms: float = 0.0
    choices: tuple[Choice, ...] = ()
    starts: tuple[Proposal, ...] = ()
    tries: tuple[Try, ...] = ()
    fresh: Measured | None = None
    held_out: Measured | None = None
    winner: int | None = None
    search_ms: float = 0.0
    is_finished: bool = False

    @property
    def is_real(self) -> bool:
        """Whether the winner is faster on fresh pairs and, where there is any, on other data."""
        measured = [self.fresh] if self.held_out is None else [self.fresh, self.held_out]
        return all(m is not None and m.verdict == "faster" for m in measured)

    @property
    def saved_ms(self) -> float:
        """Wall time that one run of the query saves; 0 where the gain is not real."""
        return (
            max(0.0, self.fresh.plain_ms - self.fresh.tuned_ms)
            if self.fresh and self.is_real
            else 0.0
        )

    @property
    def paid_after_runs(self) -> int | None:
        """Runs of the query after which the search has cost less than it saved; null for never."""
        return math.ceil(self.search_ms / self.saved_ms) if self.saved_ms else None

    def changed(self, **fields: Any) -> Evidence:
        """Returns a copy with other values."""
        return self.model_copy(update=fields)

    def write(self, path: Path) -> None:
        """Writes the file, whole or not at all."""
        made = path.with_name(f".{path.name}.new")
        try:
            made.write_text(self.model_dump_json(indent=1), encoding="utf-8")
            made.replace(path)
        except OSError as error:
            message = f"cannot write the search's state: {error.strerror}."
            raise AqePilotError(Problem("OUTPUT_UNWRITABLE", message, str(path))) from error

    @classmethod
    def read(cls, path: Path) -> Evidence | None:
        """Returns what a file holds; null where there is none.

        Raises:
            AqePilotError: It is no such file.
        """
        if not path.is_file():
            return None
        try:
            return cls.model_validate_json(path.read_text("utf-8"))
        except (ValidationError, UnicodeDecodeError) as error:
            message = "it is no file of `aqepilot tune`; name another one, or take it away."
            raise AqePilotError(Problem("EVIDENCE_INVALID", message, str(path))) from error

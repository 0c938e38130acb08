"""`aqepilot.tune`: searches the best answers for a query, and keeps what is really faster."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqepilot.analysis.bench.pairs import Query, require_classic
from aqepilot.analysis.intervals import interval
from aqepilot.analysis.prices import Prices
from aqepilot.analysis.tune.evidence import Evidence
from aqepilot.analysis.tune.measure import Limits, Search
from aqepilot.analysis.tune.runs import SparkRuns
from aqepilot.analysis.tune.search import Searcher, named
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Tuned(NamedTuple):
    """What came of a search.

    Attributes:
        evidence: All that was tried and measured.
        policy: The policy file; null where no answer is really faster.
        cost: Of the search, in the currency of the prices; null without prices.
    """

    evidence: Evidence
    policy: Path | None
    cost: float | None


def tune(
    spark: SparkSession,
    query: Query,
    out: str | Path,
    *,
    fingerprint: str | None = None,
    held_out: SparkSession | None = None,
    search: str | Searcher = "bandit",
    tries: int = 15,
    minutes: float | None = None,
    cost: float | None = None,
    prices: Prices | None = None,
    rounds: int = 30,
    margin: float = 0.03,
    seed: int | None = None,
    progress: Callable[[Evidence], None] | None = None,
) -> Tuned:
    """Tries other plans for a query, and writes a policy for it if one is really faster.

    Candidates are legal answers at the decisions that the query comes to. Each is run beside plain
    Spark, within a time that the best so far sets, and its rows are compared with plain Spark's.
    The best is measured again on fresh pairs, and on other data where there is any: the best of
    many tries is often only lucky. The evidence is written after each try, and a search whose
    evidence is there goes on from it.

    Args:
        spark: A classic session in which the extension is live.
        query: A statement, or a function of a session, whose DataFrame is run.
        out: The policy file, ``*.toml``. The evidence is beside it, as ``*.json``.
        fingerprint: Of the query to tune, where the function runs several; null for all.
        held_out: A session with another day's data under the same names; null for none.
        search: ``bandit``, ``exhaustive``, the name of an entry point of `aqepilot_searchers`,
            ``module:function``, or a function.
        tries: How many candidates are run at most; 1 or more.
        minutes: Wall time after which none begins; null for no such bound.
        cost: Money after which none begins; null for no such bound. It needs prices.
        prices: What cores cost.
        rounds: Fresh pairs at most, and pairs on other data; 5 or more, as fewer say nothing. It
            ends before where the gain is clear, or could not become clear.
        margin: How little counts as no difference, as a share of the time.
        seed: Draws which of a pair goes first; null for another order each time.
        progress: Gets the evidence after each step.

    Raises:
        NotLiveError: The extension is not live here, or the session is one of Spark Connect.
        AqePilotError: The query fails, it has nothing to decide, or a file cannot be written.
    """
    out = Path(out)
    if cost is not None and prices is None:
        message = "a bound in money needs prices: name a file of them."
        raise AqePilotError(Problem("PRICES_MISSING", message))
    if out.suffix != ".toml":
        raise AqePilotError(Problem("OUTPUT_INVALID", "a policy file is called *.toml.", str(out)))
    require_classic(spark, "tuning")
    searcher = named(search) if isinstance(search, str) else search
    slots = spark.sparkContext.defaultParallelism
    kept = out.with_suffix(".json")
    bounds = [60 * minutes] if minutes is not None else []
    if cost is not None and prices is not None:
        bounds.append(cost / prices.cost(1000 * slots))
    limits = Limits(tries, rounds, min(bounds, default=None))

    def saved(evidence: Evidence) -> None:
        evidence.write(kept)
        if progress:
            progress(evidence)

    before = Evidence.read(kept)
    if before is not None and before.is_finished:
        evidence = before
    else:
        runs = SparkRuns(spark, query, fingerprint, held_out)
        evidence = _begun(runs, spark, out.stem, slots, before)
        saved(evidence)
        drawn = random.Random(seed)
        has_held_out = held_out is not None
        loop = Search(runs, searcher, limits, margin, drawn, saved, has_held_out)
        evidence = loop.run(evidence)
        _write(runs, evidence, out)
        saved(evidence)
    is_there = evidence.is_real and out.is_file()
    spent = prices.cost(evidence.search_ms * slots) if prices else None
    return Tuned(evidence, out if is_there else None, spent)


def _begun(
    runs: SparkRuns, spark: SparkSession, name: str, slots: int, before: Evidence | None
) -> Evidence:
    """The evidence of a search that begins, or that goes on."""
    begin = time.perf_counter()
    plain_ms, has_same_rows, choices, starts = runs.begin()
    spent_ms = (time.perf_counter() - begin) * 1000
    if before is None:
        return Evidence(
            query=name,
            fingerprints=runs.fingerprints,
            spark_version=spark.version,
            slots=slots,
            has_same_rows=has_same_rows,
            plain_ms=plain_ms,
            choices=choices,
            starts=starts,
            search_ms=spent_ms,
        )
    if before.fingerprints != runs.fingerprints:
        message = (
            "the evidence that is there is about another query: name another file, or take it away."
        )
        raise AqePilotError(Problem("EVIDENCE_OTHER_QUERY", message, name))
    return before.changed(search_ms=before.search_ms + spent_ms)


def _write(runs: SparkRuns, evidence: Evidence, out: Path) -> None:
    """Writes the policy; one of an earlier search goes where nothing is faster."""
    out.unlink(missing_ok=True)
    if not evidence.is_real or evidence.winner is None or evidence.fresh is None:
        return
    answers = evidence.tries[evidence.winner].proposal.answers
    lines = [f"Found by `aqepilot tune` for {evidence.query}, on Spark {evidence.spark_version}."]
    lines.append(f"Time on fresh pairs: {interval(evidence.fresh.log_ratio)}.")
    if evidence.held_out:
        lines.append(f"Time on other data: {interval(evidence.held_out.log_ratio)}.")
    lines.append(f"The evidence is in {out.with_suffix('.json').name}.")
    name = re.sub(r"\W+", "_", f"tuned_{out.stem}".lower())
    out.write_text(runs.policy(answers, name, "\n".join(lines)), encoding="utf-8")

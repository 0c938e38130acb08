"""What the folder of an autopilot says to those who only read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import ValidationError

from aqepilot.analysis.report import Autopilot
from aqepilot.autopilot import sentences
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.journal import LIVE, STATE, Journal
from aqepilot.autopilot.state import State

if TYPE_CHECKING:
    from aqepilot.analysis.prices import Prices


def state(definition: Definition, conf: Mapping[str, str] | None = None) -> State:
    """Returns the state, with the newest figures of its trials where those were kept.

    Args:
        definition: Where it is.
        conf: Spark settings for the file system.

    Raises:
        AqePilotError: The journal cannot be read.
    """
    journal = Journal(definition.state, conf)
    whole = journal.read()
    try:
        kept = State.model_validate_json(journal.text(STATE) or "{}")
    except ValidationError:
        return whole
    same = {
        name: trial.figures
        for name, trial in kept.trials.items()
        if name in whole.trials and whole.trials[name].part == trial.part
    }
    return whole.measured(same)


def for_report(definition: Definition, prices: Prices | None = None) -> Autopilot:
    """Returns what the report shows of an autopilot.

    Args:
        definition: Where the state is.
        prices: For money; null for none.

    Raises:
        AqePilotError: The journal cannot be read.
    """
    whole = state(definition)
    listed = sentences.data(whole, definition, prices)
    rows = sentences.rows(listed)
    return Autopilot(sentences.HEAD, rows, sentences.LEARNED_HEAD, sentences.learned_rows(whole))


def settings(
    definition: Definition, job: str, conf: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns what a job is submitted with; nothing where nothing is live for it.

    Args:
        definition: Where the state is.
        job: The job.
        conf: Spark settings for the file system.

    Raises:
        AqePilotError: The file cannot be read.
    """
    text = Journal(definition.state, conf).text(LIVE)
    live = json.loads(text)["jobs"] if text else {}
    own: dict[str, str] = live.get(job, {})
    return own

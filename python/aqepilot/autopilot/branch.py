"""A branch's worth of files: policies, experiments, evidence, and a message for a pull request."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from aqepilot import toml
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.live import experiment
from aqepilot.autopilot.reasons import REASONS
from aqepilot.autopilot.sentences import effect, hours
from aqepilot.autopilot.state import State, Trial
from aqepilot.errors import AqePilotError, Problem
from aqepilot.experiment.definition import Definition as Experiment

_FOLDERS = ("policies", "experiments", "evidence")
MESSAGE = "PULL_REQUEST.md"


def write(definition: Definition, state: State) -> None:
    """Makes a folder's files those of the state; leaves others' files alone.

    Args:
        definition: It names the folder.
        state: The state.

    Raises:
        AqePilotError: The folder cannot be written.
    """
    root = Path(definition.folder)
    texts = files(state)
    try:
        for folder in _FOLDERS:
            for file in sorted((root / folder).glob("autopilot_*")):
                if f"{folder}/{file.name}" not in texts:
                    file.unlink(missing_ok=True)
        for name, text in texts.items():
            _put(root / name, text)
    except OSError as error:
        message = f"the autopilot's files cannot be written: {error.strerror}."
        raise AqePilotError(Problem("FILE_REFUSED", message, str(root))) from error


def files(state: State) -> dict[str, str]:
    """Returns the texts of all files, by their names in the folder."""
    texts = {}
    for trial in state.open:
        texts[f"policies/{trial.name}.toml"] = _policy(trial)
        if drawn := experiment(state, trial):
            texts[f"experiments/{trial.name}.toml"] = _experiment(drawn)
        texts[f"evidence/{trial.name}.md"] = _page(trial)
        texts[f"evidence/{trial.name}.json"] = trial.model_dump_json(indent=1) + "\n"
    texts[MESSAGE] = _message(state)
    return texts


def _put(path: Path, text: str) -> None:
    if path.is_file() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        made.write_text(text, encoding="utf-8")
        os.replace(made, path)
    finally:
        made.unlink(missing_ok=True)


def _policy(trial: Trial) -> str:
    comment = "\n".join(_plain(line) for line in trial.candidate.why.splitlines())
    return trial.policy().to_toml(comment)


def _experiment(drawn: Experiment) -> str:
    keys = (("name", drawn.name), ("arms", drawn.arms), ("when", drawn.when or ""))
    return "\n".join(
        ["[experiment]", *(f"{key} = {toml.quoted(value)}" for key, value in keys), ""]
    )


def _plain(text: str) -> str:
    """A text of a log in a comment or a page: one line, without what Markdown or HTML obeys."""
    kept = "".join(c if c.isprintable() else " " for c in text)
    for mark in "\\`*_[]<>#|":
        kept = kept.replace(mark, f"\\{mark}" if mark not in "<>" else {"<": "‹", ">": "›"}[mark])
    return kept


def _page(trial: Trial) -> str:
    figures = trial.figures
    return "\n".join(
        [
            f"# {trial.name}",
            "",
            f"Job: {_plain(trial.job)}",
            "",
            *(_plain(line) for line in trial.candidate.why.splitlines()),
            "",
            "| What | Value |",
            "| --- | --- |",
            f"| phase | {trial.phase} |",
            f"| share of treated runs | {trial.share:g} % |",
            f"| effect | {effect(trial)} |",
            f"| runs: control, treated | {figures.control}, {figures.treatment} |",
            f"| saved so far | {hours(trial.saved_ms + figures.saved_ms - trial.harm_ms)} |",
            f"| source | {_plain(trial.candidate.source)} |",
            f"| last step | {trial.reason}: {_plain(REASONS.get(trial.reason, ''))} |",
            "",
            _plain(trial.detail),
            "",
        ]
    )


def _message(state: State) -> str:
    phases: tuple[tuple[str, str], ...] = (
        ("promoted", "Promoted: all runs but a hold-out"),
        ("experiment", "In an experiment"),
        ("shadow", "In shadow mode: recorded only"),
    )
    lines = ["Policies of the autopilot", ""]
    for phase, title in phases:
        rows = [trial for trial in state.open if trial.phase == phase]
        lines += _listed(title, (_line(trial) for trial in rows)) if rows else []
    taken = [t for t in state.trials.values() if t.is_over and t.number is not None][-20:]
    lines += _listed("Taken back, the newest 20", map(_line, taken)) if taken else []
    return "\n".join(lines)


def _listed(title: str, lines: Iterable[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _line(trial: Trial) -> str:
    return (
        f"- {_plain(trial.job)}: {_plain(trial.candidate.recipe)}, {effect(trial)}. "
        f"{REASONS.get(trial.reason, '')} ({trial.reason})."
    )

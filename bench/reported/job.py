"""What a reported job is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = Iterable[Any]


def _nothing(_spark: SparkSession, _folder: Path) -> None:
    """Writes no tables."""


class Job(NamedTuple):
    """A job of a public report.

    Attributes:
        finding: The kind that names its trouble.
        master: Where it runs.
        run: Runs it and returns its rows; `changed` is the job with the change that the finding
            names.
        prepare: Writes what it reads into its folder.
        conf: Settings of its sessions.
    """

    finding: str
    master: str
    run: Callable[[SparkSession, Path, bool], Rows]
    prepare: Callable[[SparkSession, Path], None] = _nothing
    conf: Mapping[str, str] = {}

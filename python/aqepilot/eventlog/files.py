"""Which files make up Spark's event logs.

Source: Spark's `EventLogFileWriter` and `EventLogFileReader`: a log is one file,
`<application>[_<attempt>][.<codec>][.inprogress]`, or a folder `eventlog_v2_<application>` of files
`events_<number>_<application>[.<codec>][.compact]`, where a compact file stands for all before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqepilot.errors import AqePilotError, Problem, first_line

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_PART = re.compile(r"(.*/eventlog_v2_[^/]+)/events_(\d+)_[^/]+")
_STATUS = re.compile(r"(.*/eventlog_v2_[^/]+)/appstatus_[^/]*")
_PACKED = re.compile(r"\.(?:zstd|zst|lz4|snappy|lzf)(?:\.compact)?(?:\.inprogress)?$")
_GLOB = re.compile(r"([\\*?\[\]{}])")


class LogFile(NamedTuple):
    """A file of an event log.

    Attributes:
        path: Where it is, as Hadoop has it.
        log: The log that it is a part of, as a URI: the folder of a rolling log, else the file
            without ``.inprogress``.
        bytes: Its size.
        modified_ms: When it was changed last, milliseconds since 1970.
        is_in_progress: Whether the log's name says that its application runs.
        uri: The same as `path`, as its lines name it.
    """

    path: str
    log: str
    bytes: int
    modified_ms: int
    is_in_progress: bool = False
    uri: str = ""

    @property
    def is_packed(self) -> bool:
        """Whether it is compressed, by its name."""
        return bool(_PACKED.search(self.path))


def find(spark: SparkSession, paths: Iterable[str | Path]) -> list[LogFile]:
    """Lists the files of the event logs in folders, at any depth, or the files themselves.

    Args:
        spark: Any session; it lists them on any file system of Hadoop's.
        paths: Folders, logs or globs of these.

    Raises:
        AqePilotError: There is no such path, it may not be read, or no file with an event is there.
    """
    from pyspark.sql import functions

    places = [str(path) for path in paths]
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
    # The content is not read: only these columns of the listing are.
    columns = ("path", "_metadata.file_path", "length", functions.unix_millis("modificationTime"))
    try:
        listed = reader.load(places)
        rows = listed.select(*columns).collect()
        # A rolled log says so by the name of an empty file, which has no row.
        names = [path for path in listed.inputFiles() if path.endswith(".inprogress")]
    except Exception as error:
        raise _unlisted(places, error) from error
    in_progress = {log_of(_STATUS.sub(r"\1/events_0_0", path)) for path in names}
    files = _chosen(
        LogFile(path, log_of(uri), size, at, log_of(uri) in in_progress, _plain(uri))
        for path, uri, size, at in rows
    )
    if not files:
        message = (
            f"there is no event log in {', '.join(places)}: no file with anything in it. Jobs "
            "write logs with spark.eventLog.enabled=true into spark.eventLog.dir."
        )
        raise AqePilotError(Problem("LOG_NOT_FOUND", message))
    return files


def log_of(path: str) -> str:
    """Returns the log that a file is a part of.

    >>> log_of("s3a://logs/eventlog_v2_app-1/events_2_app-1.zstd")
    's3a://logs/eventlog_v2_app-1'
    >>> log_of("file:/logs/app-1.lz4.inprogress")
    'file:///logs/app-1.lz4'
    """
    part = _PART.fullmatch(path)
    return _plain(part[1] if part else path.removesuffix(".inprogress"))


def _plain(uri: str) -> str:
    return re.sub(r"^file:/+", "file:///", uri)


def log_column(file: Column) -> Column:
    """Returns `log_of` as a Column over a file's path."""
    from pyspark.sql import functions

    log = functions.regexp_replace(file, r"(/eventlog_v2_[^/]+)/events_\d+_[^/]+$", "$1")
    return uri_column(functions.regexp_replace(log, r"\.inprogress$", ""))


def uri_column(file: Column) -> Column:
    """Returns `LogFile.uri` as a Column over a file's path."""
    from pyspark.sql import functions

    return functions.regexp_replace(file, r"^file:/+", "file:///")


def refuse_unreadable(log_files: Iterable[LogFile]) -> None:
    """Tells of files that this Python cannot read.

    Raises:
        AqePilotError: There is one; says what to do.
    """
    if not any(file.is_packed for file in log_files):
        return
    try:
        import pyarrow  # type: ignore[import-untyped,unused-ignore]  # noqa: F401
    except ImportError:
        message = (
            "compressed event logs are read by PyArrow, which this Python does not have: pip "
            "install pyarrow, here and where executors run. Or write plain logs "
            "(spark.eventLog.compress=false)."
        )
        raise AqePilotError(Problem("PYARROW_MISSING", message)) from None


def _chosen(files: Iterable[LogFile]) -> list[LogFile]:
    """Leaves out what another file stands for, and what holds no events."""
    chosen: list[LogFile] = []
    kept = (f for f in files if f.bytes and not _STATUS.fullmatch(f.path))
    for _, own in groupby(sorted(kept, key=lambda f: (f.log, f.path)), key=lambda f: f.log):
        chosen.extend(_of_log(list(own)))
    return chosen


def _of_log(files: list[LogFile]) -> Iterator[LogFile]:
    numbers = {f: _PART.fullmatch(f.path) for f in files}
    compact = max(
        (int(part[2]) for f, part in numbers.items() if part and f.path.endswith(".compact")),
        default=-1,
    )
    for file, part in numbers.items():
        is_compact = file.path.endswith(".compact")
        if not part:
            # A finished log and the same in progress: it was renamed while they were listed.
            if len(files) == 1 or not file.path.endswith(".inprogress"):
                yield file
        elif int(part[2]) > compact or (int(part[2]) == compact and is_compact):
            yield file


def as_glob(path: str) -> str:
    r"""Returns the glob of this path alone, as Spark takes all that it reads for globs.

    >>> print(as_glob("logs/{a}"))
    logs/\{a\}
    """
    return _GLOB.sub(r"\\\1", path)


def is_there(spark: SparkSession, path: str) -> bool:
    """Returns whether a path exists, as far as the session may see it."""
    try:
        return bool(spark.read.format("binaryFile").load(as_glob(path)).columns)
    except Exception:
        return False


def is_not_there(error: Exception) -> bool:
    """Returns whether Spark says that a path does not exist."""
    return "PATH_NOT_FOUND" in str(error) or "Path does not exist" in str(error)


def is_gone(error: Exception) -> bool:
    """Returns whether Spark says that a file which it had listed does not exist any more."""
    words = ("FILE_NOT_EXIST", "FileNotFoundException", "FileNotFoundError")
    return is_not_there(error) or any(word in str(error) for word in words)


def _unlisted(places: Sequence[str], error: Exception) -> AqePilotError:
    text = str(error)
    where = ", ".join(places)
    first = first_line(error)
    if is_not_there(error):
        return AqePilotError(Problem("LOG_NOT_FOUND", f"there is nothing at {where}: {first}"))
    if "ermission denied" in text or "AccessControlException" in text:
        message = f"{where} may not be read by the user that runs Spark here: {first}"
        return AqePilotError(Problem("LOG_NOT_PERMITTED", message))
    return AqePilotError(Problem("LOG_UNREADABLE", f"{where} cannot be listed: {first}"))

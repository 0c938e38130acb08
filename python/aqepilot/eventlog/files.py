"""Which files make up Spark's event logs, and their lines.

Source: Spark's `EventLogFileWriter` and `EventLogFileReader`: a log is one file,
`<application>[_<attempt>][.<codec>][.inprogress]`, or a folder `eventlog_v2_<application>` of files
`events_<number>_<application>[.<codec>][.compact]`, where a compact file stands for all before it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqepilot.errors import AqePilotError, Problem, first_line

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PART = re.compile(r"(.*/eventlog_v2_[^/]+)/events_(\d+)_[^/]+")
_STATUS = re.compile(r"(.*/eventlog_v2_[^/]+)/appstatus_[^/]*")
_PACKED = re.compile(r"\.(?:zstd|zst|lz4|snappy|lzf)(?:\.compact)?(?:\.inprogress)?$")
_GLOB = re.compile(r"([\\*?\[\]{}])")
# Hadoop means something else by `.lz4` and `.snappy`; its codec that passes all through reads the
# file as it is, in one piece. Its setting has another name where Hadoop is shaded, as in pyspark.
_PASSED = "org.apache.hadoop.io.compress.PassthroughCodec"
_PASSED_KEYS = tuple(
    f"{shaded}io.compress.passthrough.extension" for shaded in ("", "org.apache.hadoop.shaded.")
)


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

    given = [str(path) for path in paths]
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
    # The content is not read: only these columns of the listing are.
    columns = ("path", "_metadata.file_path", "length", functions.unix_millis("modificationTime"))
    try:
        listed = reader.load(given)
        rows = listed.select(*columns).collect()
        # A rolled log says so by the name of an empty file, which has no row.
        names = [path for path in listed.inputFiles() if path.endswith(".inprogress")]
    except Exception as error:
        raise _unlisted(given, error) from error
    in_progress = {log_of(_STATUS.sub(r"\1/events_0_0", path)) for path in names}
    files = _chosen(
        LogFile(path, log_of(uri), size, at, log_of(uri) in in_progress, _plain(uri))
        for path, uri, size, at in rows
    )
    if not files:
        message = (
            f"there is no event log in {', '.join(given)}: no file with anything in it. Jobs write "
            "logs with spark.eventLog.enabled=true into spark.eventLog.dir."
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


def refuse_unreadable(of: Iterable[LogFile]) -> None:
    """Tells of files that this Python cannot read.

    Raises:
        AqePilotError: There is one; says what to do.
    """
    if not any(file.is_packed for file in of):
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


def lines(spark: SparkSession, files: Sequence[LogFile], prefixes: Sequence[str]) -> DataFrame:
    """Reads lines of event logs: one row each, with `file`, `block`, `value` and `problem`.

    `block` is where the part of the file begins that its task read; see `place`.

    Each compressed file is read by one task, a line at a time; a plain one by as many as it has
    blocks. Of a compressed file that cannot be read to its end, one row has the `problem`.

    Args:
        spark: The session.
        files: What `find` found.
        prefixes: Only lines that begin with one of these; of none, all lines.
    """
    from pyspark.sql import functions

    found = []
    for suffix, own in groupby(sorted(files, key=_suffix), key=_suffix):
        text = _text(spark, [file.path for file in own], suffix)
        if suffix:
            found.append(_unpacked(text, prefixes))
            continue
        value = functions.col("value")
        if prefixes:
            begins = (value.startswith(prefix) for prefix in prefixes)
            text = text.where(reduce(lambda one, other: one | other, begins))
        problem = functions.lit(None).cast("string").alias("problem")
        # Spark's hidden column _metadata says the same, and copies each line for it.
        where = (functions.input_file_name(), functions.input_file_block_start())
        found.append(text.select(*where, value, problem).toDF(*_LINE))
    return reduce(lambda one, other: one.union(other), found)


_LINE = ("file", "block", "value", "problem")


def place() -> Column:
    """Returns what rises with the lines of a log, over what `lines` returned."""
    from pyspark.sql import functions

    return functions.expr(
        "struct(cast(nullif(regexp_extract(file, '/events_([0-9]+)_[^/]+$', 1), '') AS bigint) "
        "AS part, block, monotonically_increasing_id() AS row)"
    )


def _suffix(file: LogFile) -> str:
    """What Hadoop would tell the codec by, of a compressed file; empty for a plain one."""
    return "." + file.path.rpartition(".")[2] if file.is_packed else ""


def _text(spark: SparkSession, paths: list[str], suffix: str) -> DataFrame:
    # With one end of lines given, no other is taken for one; what is gone or bad meanwhile is left.
    reader = spark.read.option("lineSep", "\n").option("ignoreMissingFiles", True)
    reader = reader.option("ignoreCorruptFiles", True)
    if suffix:
        reader = reader.option("io.compression.codecs", _PASSED)
        for key in _PASSED_KEYS:
            reader = reader.option(key, suffix)
    return reader.text([as_glob(path) for path in paths])


def _unpacked(text: DataFrame, prefixes: Sequence[str]) -> DataFrame:
    from pyspark import cloudpickle
    from pyspark.sql import functions

    from aqepilot.eventlog import codecs

    cloudpickle.register_pickle_by_value(sys.modules[codecs.__name__])  # type: ignore[no-untyped-call]
    pieces = text.select(
        "_metadata.file_path", "_metadata.file_size", functions.col("value").cast("binary")
    )
    task = codecs.lines_of(tuple(prefix.encode() for prefix in prefixes))
    schema = "file string, value string, problem string"
    unpacked = pieces.mapInArrow(task, schema)
    block = functions.lit(0).cast("bigint").alias("block")
    return unpacked.select("file", block, "value", "problem")


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


def _unlisted(given: Sequence[str], error: Exception) -> AqePilotError:
    text = str(error)
    where = ", ".join(given)
    first = first_line(error)
    if is_not_there(error):
        return AqePilotError(Problem("LOG_NOT_FOUND", f"there is nothing at {where}: {first}"))
    if "ermission denied" in text or "AccessControlException" in text:
        message = f"{where} may not be read by the user that runs Spark here: {first}"
        return AqePilotError(Problem("LOG_NOT_PERMITTED", message))
    return AqePilotError(Problem("LOG_UNREADABLE", f"{where} cannot be listed: {first}"))

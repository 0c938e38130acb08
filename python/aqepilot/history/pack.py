"""Packs: built from event logs, replaced as a whole, and read for a person."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime, timezone
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from aqepilot import hadoop
from aqepilot.errors import AqePilotError, Problem, first_line
from aqepilot.eventlog import events, files
from aqepilot.eventlog.events import expr
from aqepilot.history import columns, decided, holding

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from aqepilot.eventlog.frames import Frames

_QUERY = ["log", "execution_id"]
_MEASURED_KINDS = "('PLAN', 'SHUFFLE', 'QUERY')"
# Of a query that runs each minute: its runs of a day.
_MOST_RUNS = 1_440
_MOST_HELD = 1_000
_KEY = ["signature", "form"]


class Kind(NamedTuple):
    """What a pack has of one kind.

    Attributes:
        kind: `PLAN`, `SHUFFLE`, `QUERY` or `HELD`.
        signatures: How many signatures, in each of the two forms.
        rows: How many rows: a row for each run of a signature.
    """

    kind: str
    signatures: int
    rows: int


class Held(NamedTuple):
    """A signature whose history is not used.

    Attributes:
        signature: 16 hexadecimal digits.
        form: `SAME` or `SHAPE`.
        until: Until when.
        reason: Why.
    """

    signature: str
    form: str
    until: datetime
    reason: str


class Pack(NamedTuple):
    """What a pack holds.

    Attributes:
        path: The file.
        size_bytes: Its size; null of an empty one.
        signatures: How many signatures, in each of the two forms.
        kinds: By kind, in the order of their names.
        oldest: When the oldest run ended; null of an empty one.
        newest: When the newest run ended; likewise.
        held: What is held, what ends last first; 1,000 at most.
    """

    path: str
    size_bytes: int | None
    signatures: int
    kinds: tuple[Kind, ...]
    oldest: datetime | None
    newest: datetime | None
    held: tuple[Held, ...]


def build(
    log: Frames, to: str | Path, *, runs: int = 10, jobs: Iterable[str] = (), slower: float = 1.2
) -> Pack:
    """Writes the history of a log's queries as a pack. See `Log.history`."""
    spark = log.sub_plans.sparkSession
    place = _Place(spark, str(to))
    names = [jobs] if isinstance(jobs, str) else list(jobs)
    with ExitStack() as ends:

        def kept(frame: DataFrame) -> DataFrame:
            """Each use of it would read the logs again."""
            ends.callback(frame.unpersist)
            return frame.persist()

        measured = kept(_measured(log.sub_plans, names))
        (newest_ms,) = measured.agg(expr("max(run_ms)")).collect()[0]
        if newest_ms is None:
            raise AqePilotError(_nothing(names, str(to)))
        by_history = decided.by_history(log)
        if names:
            by_history = by_history.where(_is_of(names))
        by_history = kept(by_history)
        rows = measured.withColumn("decided", expr("false"))
        held = None
        if by_history.take(1):
            every_run = _runs(log, measured, by_history)
            in_force = kept(_in_force(by_history, every_run))
            rows = _marked(measured, in_force)
            held = _held(every_run, in_force, measured, slower).where(f"until_ms > {newest_ms}")
        place.replace(_rows(_newest(rows, runs), held))
    return read(spark, to)


def read(spark: SparkSession, path: str | Path) -> Pack:
    """Returns what a pack holds.

    Args:
        spark: Any session.
        path: The file, on any file system that the session reads.

    Raises:
        AqePilotError: There is no such file, it is no pack, or one of another version.
    """
    try:
        there = spark.read.parquet(files.as_glob(str(path)))
        if missing := [c.name for c in columns.COLUMNS if c.name not in there.columns]:
            message = f"it is no pack: it has no column {', '.join(missing)}."
            raise AqePilotError(Problem("HISTORY_DAMAGED", message, str(path)))
        figures = {
            "signatures": "count(DISTINCT signature, form)",
            "rows": "count(*)",
            "version": "max(version)",
            "oldest": "min(run_ms)",
            "newest": "max(run_ms)",
            "size": "max(file_size)",
        }
        sized = there.select("*", "_metadata.file_size")
        of_kinds = events.aggregated(sized.groupBy("kind"), figures).orderBy("kind").collect()
        (signatures,) = there.agg(expr("count(DISTINCT signature, form)")).collect()[0]
        held = (
            there.where("kind = 'HELD'")
            .selectExpr("lower(lpad(hex(signature), 16, '0'))", "form", "held_until_ms", "reason")
            .orderBy(expr("held_until_ms").desc(), "signature", "form")
            .limit(_MOST_HELD)
            .collect()
        )
    except AqePilotError:
        raise
    except Exception as error:
        code = "HISTORY_NOT_FOUND" if files.is_not_there(error) else "HISTORY_DAMAGED"
        message = f"there is no pack that can be read: {first_line(error)}"
        raise AqePilotError(Problem(code, message, str(path))) from error
    versions = {row.version for row in of_kinds} - {columns.VERSION}
    if versions:
        message = (
            f"the pack has version {versions.pop()}, and this aqepilot reads {columns.VERSION}: "
            "build it with the aqepilot that the jobs have."
        )
        raise AqePilotError(Problem("HISTORY_VERSION", message, str(path)))
    measured = [row for row in of_kinds if row.kind != "HELD"]
    return Pack(
        str(path),
        max((row.size for row in of_kinds), default=None),
        signatures,
        tuple(Kind(row.kind, row.signatures, row.rows) for row in of_kinds),
        min((_time(row.oldest) for row in measured), default=None),
        max((_time(row.newest) for row in measured), default=None),
        tuple(Held(name, form, _time(until), reason) for name, form, until, reason in held),
    )


def _time(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, timezone.utc)


def _nothing(jobs: list[str], to: str) -> Problem:
    where = f" of a job like {', '.join(jobs)}" if jobs else ""
    message = (
        f"the logs have no sub-plan{where}, so nothing was written. Jobs measure them with "
        "spark.aqepilot.history.learn=true, which is the default with policies, and write them "
        "into their event logs unless spark.aqepilot.log.facts=none."
    )
    return Problem("HISTORY_EMPTY", message, to)


def _measured(sub_plans: DataFrame, jobs: list[str]) -> DataFrame:
    """Sub-plans of the jobs, but for those that no aqepilot wrote."""
    rows = sub_plans.where(
        f"kind IN {_MEASURED_KINDS} AND same RLIKE '^[0-9a-f]{{16}}$' "
        "AND shape RLIKE '^[0-9a-f]{16}$' AND time IS NOT NULL AND execution_id IS NOT NULL"
    ).withColumn("run_ms", expr("unix_millis(time)"))
    return rows.where(_is_of(jobs)) if jobs else rows


def _is_of(jobs: list[str]) -> Column:
    from pyspark.sql import functions

    job = functions.col("job")
    return reduce(
        lambda one, other: one | other, (job.rlike(f"^{fnmatch.translate(glob)}") for glob in jobs)
    )


def _number(name: str) -> str:
    """Returns a signature of 16 hexadecimal digits in SQL as a signed number."""
    return f"CAST(conv({name}, 16, -10) AS bigint)"


def _runs(log: Frames, measured: DataFrame, by_history: DataFrame) -> DataFrame:
    """All runs of queries: those that ended, and those whose driver is gone, which failed."""
    queries = measured.where("kind = 'QUERY' AND fingerprint IS NOT NULL").selectExpr(
        *(*_QUERY, "fingerprint", "run_ms", "task_ms", "input_bytes"),
        "coalesce(failures, 0) > 0 AS has_failed",
    )
    lost = decided.unfinished(log, by_history, queries)
    return queries.unionByName(
        lost.withColumn("has_failed", expr("true")), allowMissingColumns=True
    )


def _in_force(by_history: DataFrame, every_run: DataFrame) -> DataFrame:
    """What history decided in each run: `log`, `execution_id`, `same` and `form`, each once.

    The query itself is among it, under the beginning of its fingerprint.
    """
    runs = every_run.selectExpr(*_QUERY, "left(fingerprint, 16) AS whole", "has_failed")
    own = by_history.join(runs, _QUERY).where("is_adopted OR has_failed")
    names = "inline(array(struct(same, form), struct(whole AS same, 'SAME' AS form)))"
    return own.selectExpr(*_QUERY, names).where("same IS NOT NULL").distinct()


def _rows(newest: DataFrame, held: DataFrame | None) -> DataFrame:
    """Returns the rows of a pack, in its order, in one partition."""
    rows = newest.withColumns({name: expr("null") for name in ("held_until_ms", "reason")})
    if held is not None:
        own = held.selectExpr(
            *("signature", "form", "'HELD' AS kind", "run_ms"),
            *("until_ms AS held_until_ms", "reason"),
        )
        rows = newest.unionByName(own, allowMissingColumns=True)
    return (
        events.shaped(rows.withColumn("version", expr(str(columns.VERSION))), columns.COLUMNS)
        .repartition(1)
        .sortWithinPartitions("signature", "form", "kind", expr("run_ms").desc())
    )


def _marked(measured: DataFrame, in_force: DataFrame) -> DataFrame:
    """Adds `decided`: whether history decided on the sub-plan in that run."""
    marks = in_force.select(*_QUERY, "same").distinct().withColumn("decided", expr("true"))
    return measured.join(marks, [*_QUERY, "same"], "left").withColumn(
        "decided", expr("coalesce(decided, false)")
    )


def _newest(rows: DataFrame, runs: int) -> DataFrame:
    """The newest runs of each signature, in both forms, of as many as a driver keeps."""
    from pyspark.sql import functions

    forms = ", ".join(
        f"struct('{form}' AS form, {form.lower()} AS name)" for form in ("SAME", "SHAPE")
    )
    named = (
        rows.select("*", expr(f"inline(array({forms}))"))
        .where("form = 'SAME' OR (kind != 'QUERY' AND shape != same)")
        .withColumn("signature", expr(_number("name")))
    )
    ranked = named.withColumn(
        "_rank",
        expr(
            "row_number() OVER (PARTITION BY signature, form, kind "
            "ORDER BY run_ms DESC, log, execution_id, same)"
        ),
    ).where(f"_rank <= {runs}")
    kept = (
        ranked.groupBy(*_KEY)
        .agg(expr("max(run_ms) AS newest"))
        .orderBy(expr("newest").desc(), *_KEY)
        .limit(columns.MOST_SIGNATURES)
    )
    return ranked.join(functions.broadcast(kept), _KEY, "left_semi").select(
        *("signature", "form", "kind", "run_ms", "decided"), *columns.MEASURED
    )


def _held(
    every_run: DataFrame, in_force: DataFrame, measured: DataFrame, slower: float
) -> DataFrame:
    """What is held: `signature`, `form`, `run_ms`, `until_ms` and `reason`, each once."""
    from pyspark.sql import functions

    shapes = measured.select(*_QUERY, "same", "shape").distinct()
    # By another shape than that of the sub-plan nothing can be found: it is held itself.
    name = expr("CASE WHEN form = 'SHAPE' THEN coalesce(shape, same) ELSE same END")
    signature = expr(f"struct(form, {_number('name')} AS signature)")
    decisions = (
        in_force.join(shapes, [*_QUERY, "same"], "left")
        .withColumn("name", name)
        .groupBy(*_QUERY)
        .agg(functions.sort_array(functions.collect_set(signature)).alias("names"))
    )
    known = "struct(run_ms, task_ms, input_bytes, has_failed, coalesce(names, array()) AS names)"
    newest = functions.expr(
        "row_number() OVER (PARTITION BY fingerprint ORDER BY run_ms DESC, log, execution_id)"
    )
    by_query = (
        every_run.join(decisions, _QUERY, "left")
        .withColumn("_rank", newest)
        .where(f"_rank <= {_MOST_RUNS}")
        .groupBy("fingerprint")
        .agg(expr(f"collect_list({known}) AS runs"))
        .where("exists(runs, r -> size(r.names) > 0)")
        .withColumn("holds", _holds(slower)("runs"))
    )
    return (
        by_query.selectExpr("fingerprint", "explode(holds) AS h")
        .selectExpr(
            *("h.form", "h.signature", "h.run_ms", "h.until_ms"),
            "concat('query ', left(fingerprint, 12), ': ', h.reason) AS reason",
        )
        .groupBy(*_KEY)
        .agg(expr("max_by(struct(run_ms, until_ms, reason), struct(until_ms, reason)) AS h"))
        .select(*_KEY, "h.*")
    )


def _holds(slower: float) -> Callable[..., Column]:
    from pyspark import cloudpickle
    from pyspark.sql import functions

    cloudpickle.register_pickle_by_value(sys.modules[holding.__name__])  # type: ignore[no-untyped-call]
    held_rows = holding.held_rows
    schema = (
        "array<struct<form: string, signature: bigint, run_ms: bigint, until_ms: bigint, "
        "reason: string>>"
    )
    made: Callable[..., Column] = functions.udf(lambda runs: held_rows(runs, slower), schema)
    return made


class _Place:
    """A file that is replaced as a whole: who reads it sees the old one or the new one."""

    def __init__(self, spark: SparkSession, to: str) -> None:
        if not hasattr(spark, "_jsparkSession"):
            message = (
                "a pack is put in its place by Hadoop's classes, which Spark Connect does not "
                "reach: build it in a classic session, or by `aqepilot history build`."
            )
            raise AqePilotError(Problem("CONNECT_WITHOUT_FILES", message, to))
        session: Any = spark
        self._to, self._jvm = to, session._jvm
        self._conf = session._jsparkSession.sessionState().newHadoopConf()
        try:
            path = self._jvm.org.apache.hadoop.fs.Path(to)
            self._fs = path.getFileSystem(self._conf)
            self._path = self._fs.makeQualified(path)
            is_folder = self._fs.exists(self._path) and (
                self._fs.getFileStatus(self._path).isDirectory()
            )
        except Exception as error:
            raise self._refused(error) from error
        if is_folder:
            message = "it is a folder, and a pack is a file: name a file in it."
            raise AqePilotError(Problem("HISTORY_NOT_WRITTEN", message, to))

    def replace(self, rows: DataFrame) -> None:
        """Writes rows of one partition beside the file, and then in its place.

        Raises:
            AqePilotError: It cannot be written; what was there stays.
        """
        name = f".{self._path.getName()}.{uuid4().hex}"
        folder = self._jvm.org.apache.hadoop.fs.Path(self._path.getParent(), name)
        try:
            writer = rows.write.option("compression", "zstd").option("maxRecordsPerFile", 0)
            writer.parquet(folder.toString())
            (part,) = (
                status.getPath()
                for status in self._fs.listStatus(folder)
                if status.getPath().getName().endswith(".parquet")
            )
            self._put(part)
        except Exception as error:
            raise self._refused(error) from error
        finally:
            self._fs.delete(folder, True)

    def _put(self, part: Any) -> None:
        scheme = str(self._path.toUri().getScheme())
        if scheme == "file":
            # Hadoop would replace the file and its checksum one after the other.
            raw = self._jvm.org.apache.hadoop.fs.RawLocalFileSystem()
            raw.initialize(self._path.toUri(), self._conf)
            name = f".{self._path.getName()}.crc"
            raw.delete(self._jvm.org.apache.hadoop.fs.Path(self._path.getParent(), name), False)
            if not raw.rename(part, self._path):
                raise OSError(f"{part} cannot be renamed to {self._path}")
            return
        if not hadoop.is_object_store(f"{scheme}:///"):
            try:
                hadoop.rename_over(self._jvm, self._conf, part, self._path)
                return
            except Exception as error:
                if not hadoop.is_thrown(error, "UnsupportedFileSystem"):
                    raise
        copied = self._jvm.org.apache.hadoop.fs.FileUtil.copy(
            self._fs, part, self._fs, self._path, False, True, self._conf
        )
        if not copied:
            raise OSError(f"{part} cannot be copied to {self._path}")

    def _refused(self, error: Exception) -> AqePilotError:
        message = f"the pack cannot be written: {first_line(error)}"
        return AqePilotError(Problem("HISTORY_NOT_WRITTEN", message, self._to))

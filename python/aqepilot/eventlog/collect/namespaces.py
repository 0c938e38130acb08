"""Collected tables in a namespace of one of Spark's catalogs: Delta Lake, Iceberg or Parquet."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from aqepilot.errors import AqePilotError, Problem, first_line
from aqepilot.eventlog import files
from aqepilot.eventlog.collect import destinations, schemas
from aqepilot.eventlog.collect.destinations import FORMATS, PART, PREFIX
from aqepilot.eventlog.frames import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_DATE = re.compile(r"/date=([^/]+)/[^/]+")
_NO_DATE = "__HIVE_DEFAULT_PARTITION__"
_OWN_CATALOG = "spark_catalog"
_NO_PACKAGE = ("DATA_SOURCE_NOT_FOUND", "PLUGIN_CLASS_NOT_FOUND", "Cannot find catalog plugin")
# How long another run takes to make a table, seconds.
_WAITS_S = (0, 1, 3)
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


class Namespace:
    """The tables of a namespace; see `destinations.Destination`.

    Spark's commands write whatever is added to a Parquet table by way of one folder in it, which
    the first of two runs that ends deletes beneath the other. So a batch is written to a folder of
    its own, and is seen when the catalog has it as a partition.
    """

    def __init__(self, spark: SparkSession, to: str, table_format: str | None) -> None:
        self._spark, self._to, self._format = spark, to, table_format
        parts = [one or other for one, other in PART.findall(to.removeprefix(PREFIX))]
        self._name = ".".join(f"`{part}`" for part in parts)
        # Where the files are of the tables that are Parquet.
        self._locations: dict[str, str] = {}
        first, current = parts[0], spark.catalog.currentCatalog()
        key = f"spark.sql.catalog.{first}"
        is_named = first == _OWN_CATALOG or spark.conf.get(key, None) is not None
        if is_named and len(parts) == 1:
            message = (
                f"{first} is a catalog: name a namespace of it, e.g. {PREFIX}{first}.aqepilot."
            )
            raise AqePilotError(Problem("NAMESPACE_MALFORMED", message))
        if not is_named and len(parts) > 1 and current == _OWN_CATALOG:
            message = (
                f"there is no catalog {first} in this session: set {key} in spark-defaults.conf, "
                f"or write {PREFIX}DATABASE for a database of the session's own catalog."
            )
            raise AqePilotError(Problem("CATALOG_NOT_FOUND", message))
        self._is_own = (first if is_named else current) == _OWN_CATALOG

    def __str__(self) -> str:
        return self._to

    def prepare(self) -> None:
        """See `Destination`."""
        there = {name: self._table(name) for name in columns.FRAMES}
        if None in there.values():
            self._make_namespace()
        for name, frame in there.items():
            if frame is None:
                self._make(name)
            else:
                self._widen(name, frame)
            if self._is_own:
                self._locate(name)

    def add(self, name: str, rows: DataFrame, batch: str) -> None:
        """See `Destination`."""
        from pyspark.sql import functions

        if name in self._locations:
            path = f"{self._locations[name]}/batch={batch}"
            destinations.write(rows, path)
            self._register(name, path, batch)
            return
        whole = rows.withColumn("batch", functions.lit(batch))
        there = self._spark.table(self._full_name(name)).schema
        schemas.shaped(whole, there).write.insertInto(self._full_name(name))

    def rows(self, name: str) -> DataFrame | None:
        """See `Destination`."""
        frame = self._table(name)
        return None if frame is None else schemas.shaped(frame, self._wanted(name))

    def lost(self) -> str | None:
        """See `Destination`."""
        kind = self._spark.conf.get("spark.sql.catalogImplementation")
        own = self._spark.conf.get(f"spark.sql.catalog.{_OWN_CATALOG}", None)
        if not self._is_own or kind != "in-memory" or own not in (None, _DELTA_CATALOG):
            return None
        return (
            "The session's own catalog is in memory, and its tables end with the session: set "
            "spark.sql.catalogImplementation to hive in spark-defaults.conf, with hive-site.xml "
            "beside it, or name a namespace of another catalog."
        )

    def _full_name(self, table: str) -> str:
        return f"{self._name}.`{table}`"

    def _wanted(self, name: str) -> StructType:
        return self._spark.createDataFrame([], schemas.ddl(name)).schema

    def _table(self, name: str) -> DataFrame | None:
        try:
            # PySpark 4 logs errors of SQL, and none of this, which a table that is not there has.
            self._spark.table(self._full_name(name)).columns  # noqa: B018
            # Others write them, too, and a session may have an old state of them.
            self._spark.sql(f"REFRESH TABLE {self._full_name(name)}")
            frame = self._spark.table(self._full_name(name))
            there = frame.columns
        except Exception as error:
            if any(code in str(error) for code in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")):
                return None
            raise self._refused(f"{name} cannot be read", error) from error
        lacking = [column for column in ("log", "batch") if column not in there]
        if lacking:
            raise self._unsuitable(name, f"has no column {lacking[0]}")
        return frame

    def _make_namespace(self) -> None:
        # Who may make tables in it may not be one who may make namespaces.
        try:
            self._spark.sql(f"DESCRIBE NAMESPACE {self._name}")
        except Exception:
            otherwise = "the namespace is not there and cannot be made; make it, or name another"
            self._run(f"CREATE NAMESPACE IF NOT EXISTS {self._name}", otherwise)

    def _make(self, name: str) -> None:
        using = self._format
        if using is None and self._is_own:
            # Without a word for it, Spark 3.5 would make tables of Hive's, of text.
            using = self._spark.conf.get("spark.sql.sources.default")
            destinations.check(self._to, using)
        by = [] if name == "applications" else ["date"]
        if self._is_own and using == "parquet":
            by.insert(0, "batch")
        sql = f"CREATE TABLE IF NOT EXISTS {self._full_name(name)} ({schemas.ddl(name)})"
        sql += f" USING {using}" if using else ""
        sql += f" PARTITIONED BY ({', '.join(by)})" if by else ""
        self._run(sql, f"{name} cannot be made", lambda: self._table(name) is not None)

    def _widen(self, name: str, frame: DataFrame) -> None:
        """Adds what a table of an older aqepilot lacks: columns, and fields of structs."""
        wanted = self._wanted(name)
        added = ", ".join(f"{path} {kind}" for path, kind in schemas.missing(frame.schema, wanted))
        if not added:
            return

        def is_done() -> bool:
            there = self._table(name)
            return there is not None and not any(schemas.missing(there.schema, wanted))

        otherwise = (
            f"{name} is of an older aqepilot and lacks {added}, which cannot be added to it; "
            "collect into another namespace from now on, and give both to --log"
        )
        self._run(f"ALTER TABLE {self._full_name(name)} ADD COLUMNS ({added})", otherwise, is_done)

    def _locate(self, name: str) -> None:
        """Finds where the files of a table are, if it is one of Parquet."""
        described = self._spark.sql(f"DESCRIBE TABLE EXTENDED {self._full_name(name)}").collect()
        values = {row["col_name"]: row["data_type"] for row in described}
        provider = str(values.get("Provider")).lower()
        if provider not in FORMATS:
            raise self._unsuitable(name, f"is none of {', '.join(FORMATS)}")
        if provider == "parquet":
            names = [row["col_name"] for row in described]
            at = names.index("# Partition Information") if "# Partition Information" in names else 0
            if names[at + 2 : at + 3] != ["batch"] or not at:
                raise self._unsuitable(name, "is not partitioned by batch first")
            self._locations[name] = values["Location"]

    def _register(self, name: str, path: str, batch: str) -> None:
        """Tells the catalog of the partitions that were written."""
        parts = [f"PARTITION (batch = '{batch}')"]
        if name != "applications":
            written = self._spark.read.schema("log string").parquet(files.as_glob(path))
            days = {match[1] for file in written.inputFiles() if (match := _DATE.search(file))}
            dates = ("NULL" if date == _NO_DATE else f"'{date}'" for date in sorted(days))
            parts = [f"PARTITION (batch = '{batch}', date = {date})" for date in dates]
        if parts:
            sql = f"ALTER TABLE {self._full_name(name)} ADD IF NOT EXISTS {' '.join(parts)}"
            self._run(sql, f"{name} does not take the partitions that were written")

    def _run(self, sql: str, otherwise: str, is_done: Callable[[], bool] | None = None) -> None:
        """Runs a statement, which a run beside this one may be running right now."""
        try:
            self._spark.sql(sql)
        except Exception as error:
            if is_done and not _lacks_package(error):
                for seconds in _WAITS_S:
                    time.sleep(seconds)
                    # What is made only in part cannot be read.
                    with suppress(AqePilotError):
                        if is_done():
                            return
            raise self._refused(otherwise, error) from error

    def _refused(self, what: str, error: Exception) -> AqePilotError:
        if _lacks_package(error):
            what += "; add the package and its settings to spark-defaults.conf"
        return AqePilotError(Problem("CATALOG_REFUSED", f"{what}: {first_line(error)}", self._to))

    def _unsuitable(self, name: str, why: str) -> AqePilotError:
        message = (
            f"the table {name} there is not one that aqepilot made: it {why}. Name another "
            "namespace, in which there is no such table."
        )
        return AqePilotError(Problem("TABLE_UNSUITABLE", message, self._to))


def _lacks_package(error: Exception) -> bool:
    return any(words in first_line(error) for words in _NO_PACKAGE)

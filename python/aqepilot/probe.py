"""Finds out what a Spark session knows of aqepilot; prints it as JSON when run by spark-submit.

A file that is named by a word gets it too, with what is wrong: a path or URI that Hadoop knows.
So it tells how it is where jobs really run, also where nobody sees what a driver prints:

    spark-submit --deploy-mode cluster ... doctor_job.py hdfs:///etc/doctor.json

`doctor` submits a copy of this file to where the jobs run, so it imports nothing of aqepilot.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "io.aqepilot.AqePilotExtension"
MARK = "aqepilot-probe:"
_PREFIX = "spark.aqepilot."
_POLICIES_KEY = "spark.aqepilot.policies"
_MODES = ("off", "shadow", "enforce")


class Finding(NamedTuple):
    """What the doctor found.

    Attributes:
        level: ``ok``, ``warning`` (works, though perhaps not as meant) or ``error``.
        code: A stable name, upper snake case.
        message: What it is and, unless it is well, what to do.
    """

    level: Literal["ok", "warning", "error"]
    code: str
    message: str


def is_connect(spark: SparkSession) -> bool:
    """Returns whether the session is a Spark Connect client's."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def gather(spark: SparkSession) -> dict[str, Any]:
    """Returns the facts by which one can tell whether aqepilot is live, and why not.

    Speaks SQL only, so that it works through Spark Connect as well.
    """
    facts: dict[str, Any] = {
        "spark_version": spark.version,
        "is_connect": is_connect(spark),
        "scala": _first(spark, "SELECT java_method('scala.util.Properties','versionNumberString')"),
        "conf": {row[0]: row[1] for row in spark.sql("SET").collect()},
        "is_class_found": _is_class_found(spark),
        "status": None,
        "error": None,
    }
    try:
        rows = spark.sql("SELECT kind, name, value, detail FROM aqepilot_status()").collect()
        facts["status"] = [list(row) for row in rows]
    except Exception as error:
        facts["error"] = str(error)
    return facts


def _is_class_found(spark: SparkSession) -> bool:
    """Asks the analyzer for a method that is not there: the error tells if the class is."""
    try:
        spark.sql(f"SELECT java_method('{EXTENSION}', 'noSuchMethod')").collect()
    except Exception as error:
        return "UNEXPECTED_STATIC_METHOD" in str(error)
    return True


def _first(spark: SparkSession, sql: str) -> str | None:
    try:
        return str(spark.sql(sql).collect()[0][0])
    except Exception:
        return None


def findings(facts: Mapping[str, Any]) -> list[Finding]:
    """Says what is well and what is wrong, as far as that follows from these facts alone.

    `aqepilot doctor` knows more: which jar fits, and what a misspelt setting was meant to be.
    """
    return [*(live(facts) if facts["status"] is not None else _not_live(facts)), *settings(facts)]


def _not_live(facts: Mapping[str, Any]) -> Iterator[Finding]:
    extensions = facts["conf"].get("spark.sql.extensions")
    if EXTENSION not in _split(extensions):
        yield Finding(
            "error",
            "EXTENSION_NOT_NAMED",
            f"spark.sql.extensions is {extensions!r} and does not name {EXTENSION}: submit what "
            "`aqepilot conf` prints.",
        )
    elif not facts["is_class_found"]:
        yield Finding(
            "error",
            "JAR_MISSING",
            f"{EXTENSION} is named, and its jar is not on the driver's class path: submit what "
            "`aqepilot conf` prints, with --jar-uri where the cluster has to fetch it.",
        )
    else:
        yield Finding(
            "error",
            "EXTENSION_FAILED",
            f"{EXTENSION} is named and its jar is there, but it did not start. The driver's log "
            f"says why, in the lines with AqePilotExtension. Spark said: {facts['error']}",
        )


def live(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Says what aqepilot itself tells of problems, points and policies."""
    said = {(kind, name): value for kind, name, value, _ in facts["status"]}
    yield Finding(
        "ok",
        "LIVE",
        f"aqepilot {said.get(('version', 'aqepilot'))} is live in Spark {facts['spark_version']} "
        f"(built for {said.get(('spark', 'built_for'))}; {said.get(('jar', 'path'))}).",
    )
    for kind, name, value, detail in facts["status"]:
        if kind == "problem":
            yield Finding("error", name, detail or value or name)
        elif kind == "point" and value == "live":
            yield Finding("ok", "POINT_LIVE", f"{name} is live.")
        elif kind == "policy" and value in _MODES:
            yield Finding("ok", "POLICY", f"policy {name}: {value}.")


def settings(facts: Mapping[str, Any]) -> list[Finding]:
    """Says what is to be known of Spark's settings and of the policies that are submitted."""
    return [*_policies(facts["conf"]), *_spark_settings(facts["conf"])]


def _policies(conf: Mapping[str, str]) -> Iterator[Finding]:
    if not _split(conf.get(_POLICIES_KEY)):
        message = f"no policy is submitted ({_POLICIES_KEY} is not set): `aqepilot conf FILE...`."
        yield Finding("warning", "NO_POLICY", message)
    elif conf.get(f"{_PREFIX}mode") == "off":
        message = f"{_PREFIX}mode is off: no policy is asked."
        yield Finding("warning", "MODE_OFF", message)


def _spark_settings(conf: Mapping[str, str]) -> Iterator[Finding]:
    if conf.get("spark.sql.adaptive.enabled", "true").lower() == "false":
        message = (
            "spark.sql.adaptive.enabled is false: Spark decides nothing while queries run, so no "
            "policy is asked. Set it to true."
        )
        yield Finding("error", "AQE_OFF", message)
    key = "spark.sql.adaptive.optimizer.excludedRules"
    excluded = [
        rule
        for rule in _split(conf.get(key))
        if rule.endswith((".DynamicJoinSelection", ".DemoteBroadcastHashJoin"))
    ]
    if excluded:
        message = (
            f"{key} switches Spark's own rule off ({', '.join(excluded)}): where a policy has no "
            "answer, nothing demotes broadcasts."
        )
        yield Finding("warning", "RULE_EXCLUDED", message)
    yield from _sizes(conf)
    if conf.get("spark.eventLog.enabled", "false").lower() != "true":
        message = (
            "spark.eventLog.enabled is not true: decisions are not kept beyond the driver's life. "
            "Set it, and spark.eventLog.dir, to keep the record."
        )
        yield Finding("warning", "EVENT_LOG_OFF", message)
    else:
        folder = conf.get("spark.eventLog.dir", "Spark's default folder")
        yield Finding("ok", "EVENT_LOG_ON", f"the event log is on ({folder}).")


def _sizes(conf: Mapping[str, str]) -> Iterator[Finding]:
    exact = _number(conf.get("spark.shuffle.minNumPartitionsToHighlyCompress"), 2000)
    for key in (
        "spark.sql.shuffle.partitions",
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum",
    ):
        partitions = _number(conf.get(key), 0)
        if partitions > exact:
            message = (
                f"{key} is {partitions}: above {exact} partitions Spark reports averages for small "
                "blocks, so that a partition to which many map tasks each gave a little much looks "
                "like any other (bytes_are_exact is false). Raise "
                "spark.shuffle.minNumPartitionsToHighlyCompress, which takes memory in the driver."
            )
            yield Finding("warning", "SIZES_AVERAGED", message)


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.strip().isdecimal() else otherwise


def _split(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def write(spark: SparkSession, path: str, text: str) -> None:
    """Writes one file to where Hadoop finds it, by the driver's own settings."""
    context = spark.sparkContext
    file = context._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
    stream = file.getFileSystem(context._jsc.hadoopConfiguration()).create(file, True)
    try:
        stream.write(text.encode())
    finally:
        stream.close()


def _main() -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("aqepilot doctor").getOrCreate()
    try:
        facts = gather(spark)
        print(MARK + json.dumps(facts))
        sys.stdout.flush()
        found = [finding._asdict() for finding in findings(facts)]
        is_well = all(finding["level"] != "error" for finding in found)
        told = {"is_well": is_well, "findings": found, "facts": facts}
        for path in sys.argv[1:]:
            write(spark, path, json.dumps(told, indent=1) + "\n")
    finally:
        spark.stop()


if __name__ == "__main__":
    _main()

"""Finds out what a Spark session knows of aqepilot; prints it as JSON when run by spark-submit.

A file that is named by a word gets it too, with what is wrong: a path or URI that Hadoop knows.
So it tells how it is where jobs really run, also where nobody sees what a driver prints:

    spark-submit --deploy-mode cluster ... doctor_job.py hdfs:///etc/doctor.json

`doctor` submits a copy of this file to where the jobs run, so it imports nothing of aqepilot.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "io.aqepilot.AqePilotExtension"
EXTENSIONS_KEY = "spark.sql.extensions"
JARS_KEY = "spark.jars"
POLICIES_KEY = "spark.aqepilot.policies"
MODE_KEY = "spark.aqepilot.mode"
MODES = ("off", "shadow", "enforce")
MARK = "aqepilot-probe:"
# Ivy, which fetches for --packages, puts the group before the name.
JAR_NAME = re.compile(r"(?:io\.aqepilot_)?aqepilot-spark-(\d+\.\d+)_(\d+\.\d+)-(.+)\.jar")
_PLACES_OF_JARS = {JARS_KEY: ",", "spark.driver.extraClassPath": ":", "spark.yarn.dist.jars": ","}
_OUR_JAR = "<the jar that `aqepilot jar` names>"


class Problem(NamedTuple):
    """Why aqepilot is not live; with `aqepilot.errors.Problem` at hand, one of those will do.

    Attributes:
        code: A stable name, upper snake case.
        message: What it is and what to do.
        where: The setting's key that it is about; null when there is none.
    """

    code: str
    message: str
    where: str | None = None


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


def findings(
    facts: Mapping[str, Any],
    jar: str = _OUR_JAR,
    no_jar: Problem | None = None,
    more: Sequence[Finding] = (),
) -> list[Finding]:
    """Says what is well and what is wrong.

    Args:
        facts: What `gather` returned.
        jar: The jar that fits this Spark.
        no_jar: Why there is none, if it is known.
        more: What else was found about the session itself.
    """
    why = why_not_live(facts, jar, no_jar)
    listed = [*([Finding("error", *why[:2])] if why else live(facts)), *more]
    twice = two_jars(facts["conf"])
    if twice and not any(finding.code == twice.code for finding in listed):
        listed.append(Finding("error", *twice[:2]))
    return [*listed, *settings(facts)]


def why_not_live(
    facts: Mapping[str, Any], jar: str = _OUR_JAR, no_jar: Problem | None = None
) -> Problem | None:
    """Returns why the extension is not live; null where it is.

    Args:
        facts: What `gather` returned.
        jar: The jar that fits this Spark.
        no_jar: Why there is none, if it is known.
    """
    conf = facts["conf"]
    if facts["status"] is not None:
        for kind, name, value, detail in facts["status"]:
            if (kind, name) == ("problem", "WRONG_SPARK_JAR"):
                return Problem(name, detail or value or name)
        return None
    is_named = EXTENSION in split(conf.get(EXTENSIONS_KEY))
    if is_named and (wrong := _wrong_jar(facts, jar)):
        return wrong
    if no_jar:
        return no_jar
    if facts["is_connect"] and not (is_named and facts["is_class_found"]):
        return _server_without(facts, is_named, jar)
    if not is_named:
        return _not_named(facts, jar)
    if not facts["is_class_found"]:
        return _no_jar(conf, jar)
    return Problem(
        "EXTENSION_FAILED",
        f"{EXTENSION} is named and its jar is there, but it did not start. The driver's log says "
        f"why, in the lines with AqePilotExtension. Spark said: {_first_line(facts['error'])}",
    )


def aqepilot_jars(conf: Mapping[str, str]) -> list[str]:
    """Returns the paths of aqepilot's jars that the settings name, one per file name."""
    by_name: dict[str, str] = {}
    for key, separator in _PLACES_OF_JARS.items():
        for path in (conf.get(key) or "").split(separator):
            name = re.split(r"[/\\]", path.strip())[-1]
            if JAR_NAME.fullmatch(name):
                by_name.setdefault(name, path.strip())
    return list(by_name.values())


def two_jars(conf: Mapping[str, str]) -> Problem | None:
    """Returns the problem of more than one aqepilot jar; null when there is at most one."""
    paths = aqepilot_jars(conf)
    if len(paths) < 2:
        return None
    message = f"more than one aqepilot jar is on the class path: {', '.join(paths)}. Keep one."
    return Problem("TWO_JARS", message, JARS_KEY)


def minor_of(version: str | None) -> str | None:
    """Returns the first two numbers of a version, ``2.13`` of ``2.13.18``; null for null."""
    return ".".join(re.split("[^0-9]+", version)[:2]) if version else None


def _wrong_jar(facts: Mapping[str, Any], jar: str) -> Problem | None:
    spark, scala = facts["spark_version"], minor_of(facts["scala"])
    for path in aqepilot_jars(facts["conf"]):
        built = JAR_NAME.search(path)
        if built and (built[1] != minor_of(spark) or (scala and built[2] != scala)):
            message = (
                f"{path} was built for Spark {built[1]} on Scala {built[2]}, and Spark {spark} "
                f"on Scala {scala} is running. Use {jar}."
            )
            return Problem("WRONG_SPARK_JAR", message, JARS_KEY)
    return None


def _server_without(facts: Mapping[str, Any], is_named: bool, jar: str) -> Problem:
    lacks = "its jar is not on the server's class path" if is_named else "it is not named there"
    message = (
        f"the Spark Connect server (Spark {facts['spark_version']}) runs without aqepilot: "
        f"{lacks}. A client cannot add it: the server has to be started with "
        f"--conf {EXTENSIONS_KEY}={EXTENSION} and --jars {jar}."
    )
    return Problem("CONNECT_SERVER_WITHOUT_AQEPILOT", message, EXTENSIONS_KEY)


def _not_named(facts: Mapping[str, Any], jar: str) -> Problem:
    now = facts["conf"].get(EXTENSIONS_KEY)
    where = f"Its jar is not on the driver's class path either (--jars {jar})"
    if facts["is_class_found"]:
        where = "Its jar is on the class path"
    message = (
        f"aqepilot is not in this session: {EXTENSIONS_KEY} "
        + (f"is {now}, without {EXTENSION}." if now else "is not set.")
        + f" {where}. Extensions are fixed when Spark starts: make the session with "
        "aqepilot.configure(SparkSession.builder, ...).getOrCreate(), or submit with what "
        "`aqepilot conf` prints."
    )
    return Problem("EXTENSION_NOT_NAMED", message, EXTENSIONS_KEY)


def _no_jar(conf: Mapping[str, str], jar: str) -> Problem:
    message = (
        f"{EXTENSIONS_KEY} names {EXTENSION}, but its jar is not on the driver's class path "
        f"({JARS_KEY} is {conf.get(JARS_KEY) or 'not set'}). Jobs run as plain Spark. Submit with "
        f"--jars {jar}; with --jars given twice Spark takes the last, so join them with a comma."
    )
    return Problem("JAR_MISSING", message, JARS_KEY)


def _first_line(error: str | None) -> str:
    return (error or "nothing").strip().splitlines()[0]


def live(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Says what aqepilot itself tells of problems, points and policies."""
    rows = {(kind, name): value for kind, name, value, _ in facts["status"]}
    yield Finding(
        "ok",
        "LIVE",
        f"aqepilot {rows.get(('version', 'aqepilot'))} is live in Spark {facts['spark_version']} "
        f"(built for {rows.get(('spark', 'built_for'))}; {rows.get(('jar', 'path'))}).",
    )
    for kind, name, value, detail in facts["status"]:
        if kind == "problem":
            yield Finding("error", name, detail or value or name)
        elif kind == "point" and value == "live":
            yield Finding("ok", "POINT_LIVE", f"{name} is live.")
        elif kind == "policy" and value in MODES:
            yield Finding("ok", "POLICY", f"policy {name}: {value}.")


def settings(facts: Mapping[str, Any]) -> list[Finding]:
    """Says what is to be known of Spark's settings and of the policies that are submitted."""
    return [*_policies(facts["conf"]), *_spark_settings(facts["conf"])]


def _policies(conf: Mapping[str, str]) -> Iterator[Finding]:
    if not split(conf.get(POLICIES_KEY)):
        message = f"no policy is submitted ({POLICIES_KEY} is not set): `aqepilot conf FILE...`."
        yield Finding("warning", "NO_POLICY", message)
    elif conf.get(MODE_KEY) == "off":
        message = f"{MODE_KEY} is off: no policy is asked."
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
        for rule in split(conf.get(key))
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


def split(value: str | None) -> list[str]:
    """Splits a comma-separated setting; null has no items.

    >>> split("a, b,,c")
    ['a', 'b', 'c']
    """
    return [item.strip() for item in (value or "").split(",") if item.strip()]


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
        listed = [finding._asdict() for finding in findings(facts)]
        is_well = all(finding["level"] != "error" for finding in listed)
        answer = {"is_well": is_well, "findings": listed, "facts": facts}
        for path in sys.argv[1:]:
            write(spark, path, json.dumps(answer, indent=1) + "\n")
    finally:
        spark.stop()


if __name__ == "__main__":
    _main()

"""Whether aqepilot is live in a Spark session and, if not, why and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from aqepilot import jars
from aqepilot.conf import EXTENSION, EXTENSIONS_KEY, JARS_KEY, split
from aqepilot.errors import JarError, Problem

_PLACES_OF_JARS = {JARS_KEY: ",", "spark.driver.extraClassPath": ":", "spark.yarn.dist.jars": ","}


def diagnose(facts: Mapping[str, Any]) -> list[Problem]:
    """Tells why the extension is not live; an empty list means that it is.

    Args:
        facts: The result of `probe.gather`.
    """
    conf, version = facts["conf"], facts["spark_version"]
    jar_names = aqepilot_jars(conf)
    if facts["status"] is not None:
        wrong = [r for r in facts["status"] if r[0] == "problem" and r[1] == "WRONG_SPARK_JAR"]
        return [Problem(name, detail or value or name) for _, name, value, detail in wrong[:1]]
    named = EXTENSION in split(conf.get(EXTENSIONS_KEY))
    none_fits: tuple[Problem, ...] = ()
    try:
        fitting = str(jars.find(version, _minor(facts["scala"])))
    except JarError as error:
        fitting, none_fits = f"(none: {error})", error.problems
    if named and (wrong_jar := _wrong_jar(jar_names, version, facts["scala"], fitting)):
        return [wrong_jar]
    if none_fits:
        return list(none_fits)
    if facts["is_connect"] and not (named and facts["is_class_found"]):
        return [_server_without(named, version, fitting)]
    if not named:
        return [_not_named(conf, facts["is_class_found"], fitting)]
    if not facts["is_class_found"]:
        return [_no_jar(conf, fitting)]
    return [
        Problem(
            "EXTENSION_FAILED",
            f"{EXTENSION} is named and its jar is there, but it did not start. The driver's log "
            f"says why, in the lines with AqePilotExtension. Spark said: {_line(facts['error'])}",
        )
    ]


def aqepilot_jars(conf: Mapping[str, str]) -> list[str]:
    """Returns the paths of aqepilot's jars that the settings name, one per file name."""
    by_name: dict[str, str] = {}
    for key, separator in _PLACES_OF_JARS.items():
        for path in (conf.get(key) or "").split(separator):
            name = re.split(r"[/\\]", path.strip())[-1]
            if jars.JAR_NAME.fullmatch(name):
                by_name.setdefault(name, path.strip())
    return list(by_name.values())


def two_jars(paths: Iterable[str]) -> Problem | None:
    """Returns the problem of more than one aqepilot jar; null when there is at most one."""
    paths = list(paths)
    if len(paths) < 2:
        return None
    message = f"more than one aqepilot jar is on the class path: {', '.join(paths)}. Keep one."
    return Problem("TWO_JARS", message, JARS_KEY)


def _minor(scala: str | None) -> str | None:
    return ".".join(scala.split(".")[:2]) if scala else None


def _wrong_jar(paths: list[str], version: str, scala: str | None, fitting: str) -> Problem | None:
    for path in paths:
        found = jars.JAR_NAME.search(path)
        built = (found[1], found[2]) if found else None
        running = (jars.minor_of(version), _minor(scala))
        if built and (built[0] != running[0] or (running[1] and built[1] != running[1])):
            message = (
                f"{path} was built for Spark {built[0]} on Scala {built[1]}, and Spark {version} "
                f"on Scala {running[1]} is running. Use {fitting}."
            )
            return Problem("WRONG_SPARK_JAR", message, JARS_KEY)
    return None


def _server_without(named: bool, version: str, fitting: str) -> Problem:
    lacks = "its jar is not on the server's class path" if named else "it is not named there"
    message = (
        f"the Spark Connect server (Spark {version}) runs without aqepilot: {lacks}. A client "
        "cannot add it: the server has to be started with "
        f"--conf {EXTENSIONS_KEY}={EXTENSION} and --jars {fitting}."
    )
    return Problem("CONNECT_SERVER_WITHOUT_AQEPILOT", message, EXTENSIONS_KEY)


def _not_named(conf: Mapping[str, str], is_class_found: bool, fitting: str) -> Problem:
    now = conf.get(EXTENSIONS_KEY)
    jar = f"Its jar is not on the driver's class path either (--jars {fitting})"
    if is_class_found:
        jar = "Its jar is on the class path"
    message = (
        f"aqepilot is not in this session: {EXTENSIONS_KEY} "
        + (f"is {now}, without {EXTENSION}." if now else "is not set.")
        + f" {jar}. Extensions are fixed when Spark starts: make the session with "
        "aqepilot.configure(SparkSession.builder, ...).getOrCreate(), or submit with what "
        "`aqepilot conf` prints."
    )
    return Problem("EXTENSION_NOT_NAMED", message, EXTENSIONS_KEY)


def _no_jar(conf: Mapping[str, str], fitting: str) -> Problem:
    now = conf.get(JARS_KEY)
    message = (
        f"{EXTENSIONS_KEY} names {EXTENSION}, but its jar is not on the driver's class path "
        f"({JARS_KEY} is {now or 'not set'}). Jobs run as plain Spark. Submit with --jars {fitting}"
        "; with --jars given twice Spark takes the last, so join them with a comma."
    )
    return Problem("JAR_MISSING", message, JARS_KEY)


def _line(error: str | None) -> str:
    return (error or "nothing").strip().splitlines()[0]

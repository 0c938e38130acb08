"""Policies as Spark settings: merged with those that are there, and written for each reader."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence

from aqepilot.policies import PREFIX, Policy
from aqepilot.submit.doctor.probe import (
    EXTENSION,
    EXTENSIONS_KEY,
    JAR_NAME,
    JARS_KEY,
    POLICIES_KEY,
    split,
)

PACKAGES_KEY = "spark.jars.packages"
CONTROL_KEY = f"{PREFIX}control"
TOKEN_KEY = f"{PREFIX}python.token"

# Extensions that take Spark's operators away from rules that stand behind them.
ENGINES = (".CometSparkSessionExtensions", ".GlutenSessionExtensions")


def settings(
    policies: Sequence[Policy],
    jar: str | None,
    there: Mapping[str, str] | None = None,
    package: str | None = None,
) -> dict[str, str]:
    """Returns the settings that switch aqepilot on with these policies.

    What is there in `there` stays: extensions and jars keep their places. Ours comes after them,
    but before a native engine, which would leave no operator of Spark's to decide on. Its policies
    are asked after the given ones, unless one of the same name replaces them.

    Args:
        policies: The policies, in the order in which they are asked.
        jar: Path or URI of aqepilot's jar; null to leave the jars as they are. It takes the place
            of another aqepilot jar.
        there: Settings that apply already.
        package: Maven coordinates of aqepilot's jar, in the place of `jar`.

    >>> there = {"spark.sql.extensions": "org.example.Ext"}
    >>> settings([], "/x.jar", there)["spark.sql.extensions"]
    'org.example.Ext,io.aqepilot.AqePilotExtension'
    >>> there = {"spark.sql.extensions": "org.apache.comet.CometSparkSessionExtensions"}
    >>> settings([], "/x.jar", there)["spark.sql.extensions"].split(",")[0]
    'io.aqepilot.AqePilotExtension'
    """
    there = there or {}
    merged: dict[str, str] = {}
    for key, ours, is_ours in ((JARS_KEY, jar, is_jar), (PACKAGES_KEY, package, is_package)):
        items = split(there.get(key))
        kept = _in_place(items, ours, is_ours) if ours else [i for i in items if not is_ours(i)]
        if ours or ((jar or package) and kept != items):
            merged[key] = ",".join(kept)
    merged[EXTENSIONS_KEY] = ",".join(_with_ours(split(there.get(EXTENSIONS_KEY))))
    names = _add([policy.name for policy in policies], split(there.get(POLICIES_KEY)))
    if names:
        merged[POLICIES_KEY] = ",".join(names)
    for policy in policies:
        merged |= policy.to_conf()
    return merged


def with_jar(jars: Iterable[str], jar: str) -> list[str]:
    """Returns the jars with ours among them once, in the place of another aqepilot jar if any."""
    return _in_place(jars, jar, is_jar)


def is_jar(path: str) -> bool:
    """Whether a path or URI is named as aqepilot's jars are."""
    return JAR_NAME.fullmatch(re.split(r"[/\\]", path)[-1]) is not None


def is_package(name: str) -> bool:
    """Whether these are Maven coordinates of one of aqepilot's jars.

    >>> is_package("io.aqepilot:aqepilot-spark-4.3_2.13:0.1.0")
    True
    """
    return re.fullmatch(r"io\.aqepilot:aqepilot-spark-[^:]+:[^:]+", name) is not None


def _in_place(items: Iterable[str], ours: str, is_ours: Callable[[str], bool]) -> list[str]:
    return _add([], [*(ours if is_ours(item) else item for item in items), ours])


def stale_keys(policies: Sequence[Policy], there: Mapping[str, str]) -> list[str]:
    """Returns the keys in `there` of policies with these names that the policies do not set."""
    return [
        key
        for policy in policies
        for key in there
        if key.startswith(f"{PREFIX}policy.{policy.name}.") and key not in policy.to_conf()
    ]


def to_args(values: Mapping[str, str]) -> str:
    """Returns shell words for spark-submit, quoted for sh and bash.

    >>> print(to_args({"spark.a": "it's"}))
    --conf 'spark.a=it'"'"'s'
    """
    return shlex.join(
        word for key, value in values.items() for word in ("--conf", f"{key}={value}")
    )


def to_defaults(values: Mapping[str, str]) -> str:
    r"""Returns lines for spark-defaults.conf, which Spark reads as Java properties.

    >>> print(to_defaults({"spark.a": "x -- y\nz"}))
    spark.a x -- y\nz
    """
    return "\n".join(f"{_escape(key, ' :=#!')} {_escape(value)}" for key, value in values.items())


def to_json(values: Mapping[str, str]) -> str:
    """Returns a JSON object of settings."""
    return json.dumps(dict(values), indent=2, ensure_ascii=False)


def parse_defaults(text: str) -> dict[str, str]:
    r"""Reads a spark-defaults.conf as Spark does: Java properties, values trimmed.

    >>> parse_defaults("# c\nspark.a   b\\\n   c\nspark.d=e\\nf ")
    {'spark.a': 'bc', 'spark.d': 'e\nf'}
    """
    values: dict[str, str] = {}
    pending = ""
    for line in re.split(r"\r\n|\n|\r", text):
        natural = line.lstrip(" \t\f")
        if not pending and natural[:1] in ("", "#", "!"):
            continue
        logical = pending + natural
        if len(re.search(r"\\*$", logical)[0]) % 2:  # type: ignore[index]
            pending = logical[:-1]
            continue
        pending = ""
        _put(values, logical)
    if pending:
        _put(values, pending)
    return values


def _put(values: dict[str, str], logical: str) -> None:
    parts = re.match(r"((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)", logical, re.DOTALL)
    if parts:
        values[_unescape(parts[1])] = _trim(_unescape(parts[2]))


def _trim(value: str) -> str:
    """As Spark's trimExceptCRLF."""
    return value.strip("".join(chr(c) for c in range(33) if c not in (10, 13)))


def _escape(text: str, special: str = "") -> str:
    named = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
    out = []
    for char in text:
        if char in named:
            out.append(named[char])
        elif char in special:
            out.append(f"\\{char}")
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2)]
    escaped = "".join(out)
    return f"\\{escaped}" if escaped[:1] in tuple(" =:") else escaped


def _unescape(text: str) -> str:
    named = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
    plain = re.sub(
        r"\\(?:u([0-9A-Fa-f]{4})|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else named.get(m[2], m[2]),
        text,
        flags=re.DOTALL,
    )
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _with_ours(extensions: list[str]) -> list[str]:
    if EXTENSION in extensions:
        return extensions
    engines = (n for n, name in enumerate(extensions) if name.endswith(ENGINES))
    place = next(engines, len(extensions))
    return [*extensions[:place], EXTENSION, *extensions[place:]]


def _add(items: list[str], more: Iterable[str]) -> list[str]:
    for item in more:
        if item not in items:
            items.append(item)
    return items


def advice(form: str, values: Mapping[str, str], is_merged: bool) -> list[str]:
    """Returns what to put where, and what to look out for, a line each.

    Args:
        form: ``args``, ``defaults`` or ``json``.
        values: The settings.
        is_merged: Whether the settings of a spark-defaults.conf are in them already.
    """
    lines = {
        "args": [
            'Put these words before your script: eval "spark-submit $(aqepilot conf ...) job.py".',
            _wins_over(values),
        ],
        "defaults": ["Put these lines at the end of spark-defaults.conf: the last of a key holds."],
        "json": [
            "Put these into your scheduler's Spark conf (Airflow: conf=; EMR: Properties of the "
            "classification spark-defaults)."
        ],
    }[form]
    if not is_merged:
        ours = PACKAGES_KEY if PACKAGES_KEY in values else JARS_KEY
        lines.append(
            f"They replace {EXTENSIONS_KEY} and {ours} of your spark-defaults.conf: if it has "
            "them, give it with --merge."
        )
    if form == "args" and not "".join(values.values()).isascii():
        lines.append(
            "A text has letters beyond ASCII: run spark-submit in a UTF-8 locale (LC_ALL=C.UTF-8), "
            "or use --format defaults."
        )
    if form == "args" and any(len(f"{k}={v}".encode()) > 120_000 for k, v in values.items()):
        lines.append(
            "A text is too long for a command line (128 KiB a word): use --format defaults."
        )
    return lines


def _wins_over(values: Mapping[str, str]) -> str:
    if PACKAGES_KEY in values:
        return (
            "If your command has --packages, add the coordinates there: --packages wins over "
            f"{PACKAGES_KEY}."
        )
    return f"If your command has --jars, add the jar there: --jars wins over {JARS_KEY}."

"""What our jar refers to and a Spark lacks, and which decision points that costs there.

Class files are read, and neither Spark nor Java is started. What it costs is what the jar itself
says in such a Spark, by `aqepilot_status()`: see `code_paths`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from aqepilot.errors import AqePilotError, Problem
from aqepilot.submit import jars
from aqepilot.submit.doctor.class_files import NEW, Classes, ClassFile, Member
from aqepilot.submit.doctor.code_paths import (
    EFFECTS,
    CodePaths,
    Effect,
    points_named,
    simple,
)
from aqepilot.submit.doctor.hierarchy import class_member
from aqepilot.submit.doctor.probe import Finding

# What it costs that a Spark lacks something.
_COSTS: Mapping[Effect, tuple[Literal["ok", "warning", "error"], str]] = {
    "off": ("error", "That switches off: {points}."),
    "policies": ("error", "A policy whose text needs it fails, and Spark decides."),
    "part": ("warning", "What uses it is left to Spark, and counted in aqepilot_status()."),
    "unused": ("ok", "No code that runs comes to it."),
}
# What Spark or its Scala must have; other libraries may be elsewhere on the class path.
_NEEDED = ("org/apache/spark/", "scala/")
# How a point's object asks for what it needs.
_NEEDS = frozenset(("needs", "ofRequiredDistribution"))
_TYPES = {
    "Z": "boolean",
    "B": "byte",
    "C": "char",
    "S": "short",
    "I": "int",
    "J": "long",
    "F": "float",
    "D": "double",
}


class Missing(NamedTuple):
    """What a Spark lacks.

    Attributes:
        kind: ``class``, ``method``, ``field``; or ``abstract``: a method that this Spark wants of a
            class of ours, which has none.
        owner: The class, with dots, that is missing or should have it.
        name: The member's name; empty for a class.
        descriptor: The member's types, as the JVM writes them; empty for a class.
        points: The decision points that are off for it, sorted.
        effect: ``off``: these points are off; ``policies``: policies' texts cannot be read, or
            fail; ``part``: a part is left to Spark, and counted in ``aqepilot_status()``;
            ``unused``: no code that runs comes to it.
        used_by: Our classes that refer to it, sorted.
    """

    kind: str
    owner: str
    name: str
    descriptor: str
    points: tuple[str, ...]
    effect: Effect
    used_by: tuple[str, ...]

    def __str__(self) -> str:
        """Returns it as Java would name it: ``a.b.C.m(int, java.lang.String)``."""
        if self.kind == "class":
            return self.owner
        if not self.descriptor or self.kind == "field":
            return f"{self.owner}.{self.name}"
        return f"{self.owner}.{self.name}({', '.join(_parameters(self.descriptor))})"


class Checked(NamedTuple):
    """A Spark beside the jar of ours that fits it.

    Attributes:
        spark: The Spark.
        jar: Our jar.
        looked_for: How many classes, methods and fields the jar refers to.
        missing: What of that the Spark lacks; what costs most comes first.
        points: The names of all decision points, sorted.
    """

    spark: jars.Spark
    jar: Path
    looked_for: int
    missing: list[Missing]
    points: tuple[str, ...]


def check(home: Path, opened: Callable[[int, int], None] = lambda count, total: None) -> Checked:
    """Compares a Spark with the jar of ours that fits it. Starts neither Spark nor Java.

    Args:
        home: A SPARK_HOME, or the folder of an installed pyspark.
        opened: Told how many jars of Spark's are open, and how many there are, at each.

    Raises:
        AqePilotError: There is no Spark in that folder, or no jar of ours for it; or a jar there
            cannot be read.
    """
    spark = jars.spark_in(home)
    if spark is None:
        message = (
            f"{home} is no Spark: it has no jars/spark-core_<Scala>-<version>.jar. Name the folder "
            "of a Spark (SPARK_HOME), or of an installed pyspark: "
            'python -c "import pyspark; print(pyspark.__path__[0])"'
        )
        raise AqePilotError(Problem("SPARK_NOT_FOUND", message))
    jar = jars.find(spark.version, spark.scala)
    # What we refer to is in few of them: the others are opened only for what these lack.
    likely = ("spark-", "scala-")
    paths = sorted((home / "jars").glob("*.jar"), key=lambda p: not p.name.startswith(likely))

    def report(count: int) -> None:
        opened(count, len(paths))

    try:
        links = Links(CodePaths(Classes([jar]).all(), Classes(paths, report)))
        missing = links.missing()
    except (OSError, zipfile.BadZipFile) as error:
        message = f"the jars of {home} cannot be read: {error}. Install that Spark anew."
        raise AqePilotError(Problem("SPARK_NOT_READABLE", message)) from error
    return Checked(spark, jar, links.looked_for, missing, tuple(sorted(links.paths.points)))


def findings(checked: Checked) -> list[Finding]:
    """Says what a Spark lacks of what the jar refers to, and which decision points that costs."""
    spark = f"Spark {checked.spark.version}"
    findings = [
        Finding(
            "ok",
            "JAR_FITS",
            f"{checked.jar.name} is for {spark} on Scala {checked.spark.scala}. Of the "
            f"{checked.looked_for} classes, methods and fields that it refers to, "
            f"{len(checked.missing) or 'none'} are missing.",
        )
    ]
    for lacking in checked.missing:
        level, costs = _COSTS[lacking.effect]
        what = (
            f"lacks the {lacking.kind} {lacking}"
            if lacking.kind != "abstract"
            else f"calls {lacking}, which the jar does not have"
        )
        users = ", ".join(lacking.used_by[:3]) + (" and others" if lacking.used_by[3:] else "")
        message = (
            f"{spark} {what}. {costs.format(points=', '.join(lacking.points))} Used by: {users}."
        )
        findings.append(Finding(level, "REFERENCE_MISSING", message))
    for point in checked.points:
        count = sum(point in lacking.points for lacking in checked.missing)
        findings.append(
            Finding(
                "error",
                "POINT_OFF",
                f"{point} is off in {spark} from the first query that needs what is missing "
                f"({count} of the above): Spark decides there, and no query fails. Run these jobs "
                "on another release of that Spark if you need this point.",
            )
            if count
            else Finding("ok", "POINT_LIVE", f"{point} has all that it uses.")
        )
    return findings


class Links:
    """What our jar refers to.

    Args:
        paths: The code of our jar, beside a Spark.

    Attributes:
        looked_for: How many classes, methods and fields the jar refers to; 0 before `missing`.
    """

    def __init__(self, paths: CodePaths) -> None:
        self.paths = paths
        self.looked_for = 0

    def missing(self) -> list[Missing]:
        """Returns what the Spark lacks of what the jar refers to; what costs most comes first."""
        users: dict[Member, set[str]] = {}
        for each in self.paths.ours.values():
            for target in self._named_by(each):
                users.setdefault(target, set()).add(each.name)
        self.looked_for = len(users)
        users = {target: by for target, by in users.items() if self._is_missing(target)}
        off: dict[Member, set[str]] = {}
        for point, need, asking in self._unmet():
            key = next((target for target in users if _is_named(target, need)), need)
            users.setdefault(key, {asking})
            off.setdefault(key, set()).add(point)
        effects: dict[Member, Effect] = dict.fromkeys(off, "off")
        for points, reached in self.paths.reached() if users else ():
            for target in users.keys() & reached.keys():
                both = (reached[target], effects.get(target, "unused"))
                effects[target] = min(both, key=EFFECTS.index)
                if reached[target] == "off":
                    off.setdefault(target, set()).update(points)
        missing = [
            Missing(
                target.kind,
                _dotted(target.owner),
                target.name,
                target.descriptor,
                tuple(sorted(off.get(target, ()))),
                effects.get(target, "unused"),
                tuple(sorted(map(_dotted, by))),
            )
            for target, by in users.items()
        ]
        return sorted(missing, key=lambda m: (EFFECTS.index(m.effect), -len(m.points), m))

    def _named_by(self, declaring: ClassFile) -> Iterator[Member]:
        yield from map(class_member, declaring.parents)
        yield from self.paths.without_code(declaring)
        for method in declaring.methods.values():
            for step in self.paths.steps(method):
                if isinstance(step.target, Member):
                    yield step.target

    def _is_missing(self, target: Member) -> bool:
        if target.kind == "class":
            return target.owner.startswith(_NEEDED) and self.paths.get(target.owner) is None
        if target.kind == "abstract":
            return True
        return self.paths.get(target.owner) is not None and not self.paths.is_there(target)

    def _unmet(self) -> Iterator[tuple[str, Member, str]]:
        """What `Health` looks for and does not find: the point, what it needs, and who says so."""
        for each in self.paths.ours.values():
            for point in points_named(each.name):
                for need in self._needs(each):
                    lines = map(self.paths.get, (need.owner, *self.paths.ancestors(need.owner)))
                    names = {
                        name for class_file in lines if class_file for name, _ in class_file.methods
                    }
                    if self.paths.get(need.owner) is None or (need.name and need.name not in names):
                        yield point, need, each.name

    def _needs(self, point: ClassFile) -> set[Member]:
        """What a point says that it needs: its own object, and those that it asks for more."""
        code = [each for m in point.methods.values() for each in point.instructions(m)]
        asked = {each.member.owner for each in code if each.member and each.member.name in _NEEDS}
        needs = set()
        for name in ({point.name} | asked) & self.paths.ours.keys():
            declaring = self.paths.ours[name]
            texts: list[str] = []
            for each in (i for m in declaring.methods.values() for i in declaring.instructions(m)):
                if each.operation == NEW and str(each.operand).endswith("/Need"):
                    texts = []
                elif isinstance(each.operand, str) and not each.class_name:
                    texts.append(each.operand[1:-1])
                elif texts and each.member and simple(each.member) == ("Need", "<init>"):
                    owner, *method = texts
                    kind = "method" if method else "class"
                    needs.add(Member(kind, owner.replace(".", "/"), "".join(method), ""))
        return needs


def _is_named(target: Member, need: Member) -> bool:
    """Whether a reference is one to what is needed: a method may be an object's own."""
    return target.owner in (need.owner, f"{need.owner}$") and target.name == need.name


def _dotted(name: str) -> str:
    return name.replace("/", ".")


def _parameters(descriptor: str) -> Iterator[str]:
    """The types of a method's parameters.

    >>> list(_parameters("(I[Ljava/lang/String;)V"))
    ['int', 'java.lang.String[]']
    """
    at, arrays = 1, 0
    while descriptor[at] != ")":
        if descriptor[at] == "[":
            arrays += 1
            at += 1
            continue
        end = descriptor.index(";", at) + 1 if descriptor[at] == "L" else at + 1
        name = _TYPES.get(descriptor[at:end]) or _dotted(descriptor[at + 1 : end - 1])
        yield name + "[]" * arrays
        at, arrays = end, 0

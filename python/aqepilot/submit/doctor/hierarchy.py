"""The classes of a jar of ours among those of a Spark: what is above one, and where a member is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aqepilot.submit.doctor.class_files import (
    ABSTRACT,
    INTERFACE,
    PRIVATE,
    STATIC,
    Classes,
    ClassFile,
    Member,
    Method,
)

JDK = ("java/", "javax/", "jdk/", "sun/", "com/sun/")
# Of the JDK's classes, whose files are not read: those that have no more than `_OF_OBJECT`.
_WITHOUT_MORE = frozenset(("java/lang/Object", "java/lang/Cloneable", "java/io/Serializable"))
_OF_OBJECT = frozenset(
    {
        "<init>",
        "clone",
        "equals",
        "finalize",
        "getClass",
        "hashCode",
        "notify",
        "notifyAll",
        "toString",
        "wait",
    }
)


class Hierarchy:
    """The classes of a jar of ours, and those of a Spark.

    Args:
        ours: The classes of our jar.
        spark: The classes of a Spark, and what else is there with them.
    """

    def __init__(self, ours: Iterable[ClassFile], spark: Classes) -> None:
        self.ours = {each.name: each for each in ours}
        self._spark = spark
        self._above: dict[str, list[str]] = {}
        self._known: dict[Member, tuple[ClassFile | None, bool]] = {}

    def get(self, name: str) -> ClassFile | None:
        """Returns a class, of ours or of Spark's; null where there is none."""
        return self.ours.get(name) or self._spark.get(name)

    def ancestors(self, name: str) -> list[str]:
        """Returns the classes and interfaces above one, the JDK's included, nearest first."""
        if name not in self._above:
            above: dict[str, None] = {}
            left = [name]
            while left:
                class_file = self.get(left.pop(0))
                new = [
                    each for each in (class_file.parents if class_file else ()) if each not in above
                ]
                above |= dict.fromkeys(new)
                left += new
            self._above[name] = list(above)
        return self._above[name]

    def is_there(self, member: Member) -> bool:
        """Returns whether a class has a member, or one above it that is out of sight may."""
        return self.find(member)[1]

    def find(self, member: Member) -> tuple[ClassFile | None, bool]:
        """Returns the class that declares a member, if it is in sight, and whether `is_there`."""
        if member not in self._known:
            self._known[member] = self._look(member)
        return self._known[member]

    def _look(self, member: Member) -> tuple[ClassFile | None, bool]:
        key = (member.name, member.descriptor)
        for name in (member.owner, *self.ancestors(member.owner)):
            if name in _WITHOUT_MORE and member.name not in _OF_OBJECT:
                continue
            class_file = None if name.startswith(JDK) else self.get(name)
            if class_file is None:
                return None, True
            if key in (class_file.fields if member.kind == "field" else class_file.methods):
                return class_file, True
        return None, False

    def without_code(self, declaring: ClassFile) -> Iterator[Member]:
        """Yields the methods that Spark declares without code and that a class of ours lacks."""
        if declaring.flags & (ABSTRACT | INTERFACE):
            return
        lines = map(self.get, (declaring.name, *self.ancestors(declaring.name)))
        classes = [class_file for class_file in lines if class_file]
        for above in classes:
            for key, method in above.methods.items() if above.name not in self.ours else ():
                if method.flags & ABSTRACT and key[0] not in _OF_OBJECT:
                    same = [own for each in classes if (own := each.methods.get(key))]
                    if all(own.flags & ABSTRACT for own in same):
                        yield Member("abstract", declaring.name, *key)

    def called_by_others(self, name: str) -> Iterator[Method]:
        """Yields the methods of an object that Spark, Scala or Java may call."""
        lines = [name, *self.ancestors(name)]
        foreign = [above for above in lines if above not in self.ours]
        is_open = any(
            above.startswith(("org/apache/spark/", *JDK)) and above not in _WITHOUT_MORE
            for above in foreign
        )
        others = [class_file for above in foreign if (class_file := self.get(above))]
        for above in lines:
            for key, method in self.ours[above].methods.items() if above in self.ours else ():
                if not method.flags & (STATIC | PRIVATE) and key[0] != "<init>":
                    is_known = key[0] in _OF_OBJECT or any(key in c.methods for c in others)
                    if is_open or is_known:
                        yield method


def class_member(name: str) -> Member:
    """Returns a class as what is referred to."""
    return Member("class", name, "", "")

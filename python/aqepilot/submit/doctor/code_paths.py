"""Which code of our jar the rules of a decision point come to, read from class files.

The JVM links a class when code comes to it, and a member when an instruction does. What it does not
find switches a point off where `Health` hears of it. Elsewhere `FailOpen`, or what reads and asks
policies, catches the fault for a part alone: what such code comes to costs less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from aqepilot.submit.doctor.class_files import (
    CALLS,
    DYNAMIC,
    NEW,
    PRIVATE,
    STATIC,
    Classes,
    ClassFile,
    Instruction,
    Member,
    Method,
)
from aqepilot.submit.doctor.hierarchy import JDK, Hierarchy, class_member

Effect = Literal["off", "policies", "part", "unused"]
# What costs most comes first.
EFFECTS: tuple[Effect, ...] = ("off", "policies", "part", "unused")
_EXTENSION = "io/aqepilot/AqePilotExtension"
_REGISTER, _RECOVER = ("Registered$", "at"), ("FailOpen$", "recover")
# By class and method that catches what its last argument throws: what a fault there costs.
_CATCHING: dict[tuple[str, str], Effect] = {
    ("FailOpen$", "apply"): "part",
    ("Start$", "apply"): "part",
    ("PolicyCompiler$", "orError"): "policies",
    ("CompiledPolicy$", "guarded"): "policies",
}


class Step(NamedTuple):
    """That code comes from a method to something.

    Attributes:
        target: A class of ours that is loaded (its name), a method of ours, or what is not ours.
        effect: What a fault there costs, where it is caught for that alone; null where it is not.
        is_made: Whether an object of that class is made, whose methods may then be called.
    """

    target: str | Method | Member
    effect: Effect | None = None
    is_made: bool = False


class CodePaths(Hierarchy):
    """The code of a jar of ours beside the classes of a Spark.

    Args:
        ours: The classes of our jar.
        spark: The classes of a Spark, and what else is there with them.
    """

    def __init__(self, ours: Iterable[ClassFile], spark: Classes) -> None:
        super().__init__(ours, spark)
        self._steps: dict[Method, list[Step]] = {}
        self._below: dict[str, list[str]] = {}
        for name in self.ours:
            for above in self.ancestors(name):
                self._below.setdefault(above, []).append(name)

    @cached_property
    def points(self) -> frozenset[str]:
        """The names of the decision points."""
        return frozenset(point for name in self.ours for point in points_named(name))

    def steps(self, method: Method) -> list[Step]:
        """Returns where the code of a method of ours comes to."""
        if method not in self._steps:
            self._steps[method] = list(self._walk(method))
        return self._steps[method]

    def _walk(self, method: Method) -> Iterator[Step]:
        for name in method.caught:
            yield from self._to_class(name)
        code = list(self.ours[method.owner].instructions(method))
        effects = self._caught(code)
        for at, each in enumerate(code):
            if each.class_name:
                yield from self._to_class(each.class_name, is_made=each.operation == NEW)
            elif each.member:
                yield from self._to_member(each.member)
            # A function is made with all types that it takes and gives: nothing catches that yet.
            for descriptor in (each.descriptor, *(handle.descriptor for handle in each.handles)):
                for name in _classes_in(descriptor):
                    yield from self._to_class(name)
            for handle in each.handles:
                yield from self._to_member(handle, effects.get(at))

    def _to_class(
        self, name: str, effect: Effect | None = None, is_made: bool = False
    ) -> Iterator[Step]:
        element = name.lstrip("[")
        if element != name:
            element = element[1:-1]  # empty for one of numbers
        if element in self.ours:
            yield Step(element, effect, is_made)
        elif element and not element.startswith(JDK):
            yield Step(class_member(element), effect)

    def _to_member(self, member: Member, effect: Effect | None = None) -> Iterator[Step]:
        if member.owner.startswith(("[", *JDK)):
            return
        yield from self._to_class(member.owner, effect)
        declaring, _ = self.find(member)
        if declaring is None or declaring.name not in self.ours:
            yield Step(member, effect)
        elif member.kind == "method":
            key = (member.name, member.descriptor)
            declared = declaring.methods[key]
            yield Step(declared, effect)
            if not declared.flags & (STATIC | PRIVATE) and member.name != "<init>":
                for below in self._below.get(member.owner, ()):
                    if key in self.ours[below].methods:
                        yield Step(self.ours[below].methods[key], effect)

    def _caught(self, code: list[Instruction]) -> dict[int, Effect]:
        """By the place in the code of a function that is given to what catches its faults."""
        effects: dict[int, Effect] = {}
        for at in range(1, len(code)):
            if _is_given(code, at) and (effect := self._effect(code, at)):
                effects[at - 1] = effect
        return effects

    def _effect(self, code: list[Instruction], at: int) -> Effect | None:
        method = code[at].member
        assert method is not None
        called = simple(method)
        if called == _REGISTER:
            return "unused"  # it is among `_roots`
        if called == _RECOVER:
            points = self._switched_off(code, at)
            return "part" if points is None else "unused" if points else None
        return _CATCHING.get(called)

    def _switched_off(self, code: list[Instruction], at: int) -> set[str] | None:
        """The points that a handler of faults names to `Health`; null where it does not tell it."""
        handlers = [each for each in code[:at] if each.descriptor.endswith("Lscala/Function1;")]
        left = list(handlers[-1].handles) if handlers else []
        is_told, points, seen = not handlers, set[str](), set[Member]()
        while left:
            member = left.pop()
            declaring = self.ours.get(member.owner)
            if member in seen or declaring is None:
                continue
            seen.add(member)
            method = declaring.methods[member.name, member.descriptor]
            for each in declaring.instructions(method):
                left += each.handles
                points |= self._point_in(each)
                if each.member and simple(each.member) == ("Health$", "after"):
                    is_told = True
        return points if is_told else None

    def reached(self) -> Iterator[tuple[set[str], dict[Member, Effect]]]:
        """Yields points, and what their code comes to that is not ours, with what it costs."""
        for points, roots in self._roots():
            yield points, self._reached_from(roots, points)

    def _roots(self) -> Iterator[tuple[set[str], list[Method]]]:
        """The methods in which a fault switches points off; last those where it does not."""
        started = [
            method
            for method in self.ours[_EXTENSION].methods.values()
            if method.name in ("<init>", "apply")
        ]
        yield set(self.points), started
        every = [(each, m) for each in self.ours.values() for m in each.methods.values()]
        registering = [m for _, m in every if simple(m) == _REGISTER]
        of_points = {point: list(registering) for point in self.points}
        for each, method in every:
            if method.name == "<clinit>":
                for point in points_named(each.name):
                    of_points[point].append(method)  # as `DecisionPoints` loads it
        others = []
        for each, method in every:
            for points, bodies in self._registered(each, method):
                others += [] if points else bodies
                for point in points:
                    of_points[point] += bodies
        for point, roots in of_points.items():
            yield {point}, roots
        yield set(), others

    def _registered(
        self, declaring: ClassFile, method: Method
    ) -> Iterator[tuple[set[str], list[Method]]]:
        """Points, and the function that is given to what switches them off for its faults."""
        code = list(declaring.instructions(method))
        named: set[str] = set()
        for at, each in enumerate(code):
            named = named | self._point_in(each)
            if each.member and each.operation in CALLS and each.member.name != "wrapRefArray":
                if at and _is_given(code, at):
                    called = simple(each.member)
                    off = self._switched_off(code, at) if called == _RECOVER else None
                    if called == _REGISTER or off:
                        yield off or named, self._bodies(code[at - 1])
                named = set()

    def _point_in(self, each: Instruction) -> set[str]:
        """The point whose name an instruction has."""
        name = each.operand[1:-1] if isinstance(each.operand, str) else ""
        return {name} & self.points

    def _bodies(self, each: Instruction) -> list[Method]:
        bodies = [(self.ours.get(h.owner), (h.name, h.descriptor)) for h in each.handles]
        return [declaring.methods[key] for declaring, key in bodies if declaring]

    def _reached_from(self, roots: list[Method], points: set[str]) -> dict[Member, Effect]:
        """What is not ours and is come to from methods, with the most that a fault there costs."""
        effects: dict[str | Method | Member, int] = {}
        made: dict[str | Method | Member, int] = {}
        unused = EFFECTS.index("unused")
        first = EFFECTS.index("off" if points else "part")
        left = [(Step(root), first) for root in roots]
        while left:
            step, before = left.pop()
            target = step.target
            effect = max(before, EFFECTS.index(step.effect) if step.effect else 0)
            if effect == unused or self._is_of_another(target, points):
                continue
            if step.is_made and isinstance(target, str) and effect < made.get(target, unused):
                made[target] = effect
                left += [(Step(method), effect) for method in self.called_by_others(target)]
            if effect >= effects.get(target, unused):
                continue
            effects[target] = effect
            if isinstance(target, Method):
                left.append((Step(target.owner), effect))
                left += [(following, effect) for following in self.steps(target)]
            elif isinstance(target, str):
                left += [(following, effect) for following in self._loaded_with(target)]
        return {
            target: EFFECTS[effect]
            for target, effect in effects.items()
            if isinstance(target, Member)
        }

    def _is_of_another(self, target: str | Method | Member, points: set[str]) -> bool:
        """Whether it is in the package of a point, and these are not that point alone.

        What all points have in common comes to the object of a point only where that was loaded:
        a fault there costs that point, which has roots of its own.
        """
        name = target if isinstance(target, str) else target.owner
        point = name.rpartition("/points/")[2].partition("/")[0]
        return bool(points) and name in self.ours and point in self.points and points != {point}

    def _loaded_with(self, name: str) -> Iterator[Step]:
        for above in self.ours[name].parents:
            yield from self._to_class(above)
        if start := self.ours[name].methods.get(("<clinit>", "()V")):
            yield Step(start)
        for lacking in self.without_code(self.ours[name]):
            yield Step(lacking)


def points_named(name: str) -> set[str]:
    """Returns the decision point that a class declares; none if it declares none.

    >>> points_named("io/aqepilot/points/skew_join/SkewJoinPoint$")
    {'skew_join'}
    """
    package, _, last = name.rpartition("/")
    point = package.rpartition("/points/")[2]
    return {point} if last == point.title().replace("_", "") + "Point$" else set()


def _classes_in(descriptor: str) -> list[str]:
    """The classes that the types in a descriptor are of.

    >>> _classes_in("(I[La/B;)Lc/D;")
    ['a/B', 'c/D']
    """
    return re.findall("L([^;]+);", descriptor)


def simple(member: Member | Method) -> tuple[str, str]:
    """Returns the class, without its package, and the name of a method."""
    return member.owner.rpartition("/")[2], member.name


def _is_given(code: list[Instruction], at: int) -> bool:
    """Whether an instruction calls a method whose last argument is a function made just before."""
    before, call = code[at - 1], code[at]
    return call.operation in CALLS and before.operation == DYNAMIC and before.end == call.place

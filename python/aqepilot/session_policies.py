"""What a session's own Python gives as policies: Python functions and Columns besides text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot import catalog, column, function, gateway
from aqepilot.errors import PolicyError, Problem
from aqepilot.policies import Policy, as_policies
from aqepilot.submit.conf import TOKEN_KEY
from aqepilot.submit.doctor import probe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PolicyLike = Policy | Mapping[str, Any] | str | Path


class SessionPolicy(NamedTuple):
    """A policy as it was given.

    Attributes:
        policy: The policy; null at the points whose text is yet to be made.
        code: What is given there: a pickled function or a Column.
    """

    policy: Policy
    code: Mapping[str, Any]


def read(spark: SparkSession, policy_likes: Iterable[PolicyLike]) -> list[SessionPolicy]:
    """Reads what a caller gave as policies; asks Spark nothing.

    Raises:
        PolicyError: Something is wrong; lists all that is wrong in all policies.
    """
    problems: list[Problem] = []
    texts: list[PolicyLike] = []
    codes: list[dict[str, Any]] = []
    for one in policy_likes:
        codes.append({})
        if isinstance(one, Mapping):
            for point in catalog.point_names():
                value = one.get(point)
                if callable(value) or column.is_column(value):
                    one = {**one, point: "null"}
                    try:
                        codes[-1][point] = _code(spark, point, value)
                    except PolicyError as error:
                        problems += _placed(error, f"{one.get('name')}.{point}")
        texts.append(one)
    try:
        policies = as_policies(texts)
    except PolicyError as error:
        problems += error.problems
    if problems:
        raise PolicyError(problems)
    return [SessionPolicy(*pair) for pair in zip(policies, codes, strict=True)]


def as_texts(spark: SparkSession, policies_with_code: Iterable[SessionPolicy]) -> list[Policy]:
    """Makes text of functions and Columns, and gives the driver the functions that are named.

    A session that has any gets the setting that stands for them; no other setting changes.

    Raises:
        PolicyError: A Column means what no text does; lists all.
        NotLiveError: The jar of this driver knows no Python functions.
    """
    problems: list[Problem] = []
    policies = []
    session = None if probe.is_connect(spark) else gateway.session(spark)
    for policy, code in policies_with_code:
        texts = dict(policy.points)
        for point, value in code.items():
            try:
                if session and isinstance(value, function.Pickled):
                    texts[point] = session.register(*value)
                else:
                    texts[point] = column.to_sql(spark, point, value)
            except PolicyError as error:
                problems += _placed(error, policy.place(point))
        policies.append(policy.model_copy(update={"points": texts}))
    if problems:
        raise PolicyError(problems)
    if session:
        allow(spark, session, policies)
    return policies


def allow(spark: SparkSession, session: gateway.Session, policies: Iterable[Policy]) -> None:
    """Lets a running session use the functions of modules that policies name.

    Raises:
        NotLiveError: The jar of this driver knows no Python functions.
    """
    if allowed(session, policies):
        spark.conf.set(TOKEN_KEY, session.token)


def allowed(session: gateway.Session, policies: Iterable[Policy]) -> bool:
    """Lets a session use the functions of modules that policies name.

    Returns:
        Whether one of the texts names a Python function.

    Raises:
        NotLiveError: The jar of this driver knows no Python functions.
    """
    for text in _texts(policies):
        if function.is_imported(text):
            session.allow(text)
    return names_python(policies)


def names_python(policies: Iterable[Policy]) -> bool:
    """Whether one of the texts names a Python function."""
    return any(function.is_python(text) for text in _texts(policies))


def _texts(policies: Iterable[Policy]) -> list[str]:
    return [text for policy in policies for text in policy.points.values()]


def _code(spark: SparkSession, point: str, value: Any) -> Any:
    if not probe.is_connect(spark):
        return value if column.is_column(value) else function.pickled(point, value)
    if column.is_column(value):
        message = "a Column of Spark Connect cannot become the text of a policy: write it as SQL."
        raise PolicyError(Problem("COLUMN_NOT_SQL", message))
    message = (
        "a Python function runs as the driver's user, so a Spark Connect client cannot bring one. "
        "The server can be started with it: spark.aqepilot.policy.<name>.<point>="
        "python:<module>:<function>."
    )
    raise PolicyError(Problem("PYTHON_NOT_ALLOWED", message))


def _placed(error: PolicyError, where: str) -> list[Problem]:
    return [problem._replace(where=where) for problem in error.problems]

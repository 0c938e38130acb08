"""PySpark Columns over facts as the SQL text of a policy, where that means the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aqepilot import catalog, gateway, testing
from aqepilot.errors import PolicyError, Problem

if TYPE_CHECKING:
    from pyspark.sql import Column, Row, SparkSession

_INSTEAD = "Write it as SQL text, or as a Python function of the facts."
_MADE = 64
_NEUTRAL = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",
}
_TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|`(?:``|[^`])*`|\w+|.", re.DOTALL)
_VARIABLE = re.compile(r"([xyz])_\d+")
_FIELD = re.compile(r"(.+) AS (\w+)", re.DOTALL)


def is_column(value: Any) -> bool:
    """Returns whether it is a PySpark Column, classic or Spark Connect."""
    return type(value).__name__ == "Column" and type(value).__module__.startswith("pyspark.sql.")


def to_sql(spark: SparkSession, point: str, column: Column) -> str:
    """Returns a Column over facts as SQL text, tried on made facts.

    Args:
        spark: A classic session with the extension live.
        point: The decision point whose facts it is over.
        column: E.g. ``F.when(F.col("side.max_bytes") < 2**20, "SHUFFLE_HASH")``.

    Raises:
        PolicyError: It has no such text, the text does not bind to the facts, or gives something
            else than the Column; says which.
    """
    text = readable(gateway.sql_of(spark, column))
    sql = "SELECT message, suggestions FROM aqepilot_check(:point, :text)"
    for row in spark.sql(sql, args={"point": point, "text": text}).collect():
        message = f"the Column becomes the text {text}, which is no policy: {row.message}"
        near = tuple(row.suggestions or ())
        raise PolicyError(Problem("COLUMN_NOT_SQL", message, suggestions=near))
    for facts, of_column, of_text in _differences(spark, point, column, text):
        message = (
            f"the Column becomes the text {text}, which gives {of_text} where the Column gives "
            f"{of_column}: {facts}. {_INSTEAD}"
        )
        raise PolicyError(Problem("COLUMN_NOT_SQL", message))
    return text


def readable(sql: str) -> str:
    """Returns what Spark writes of a Column as a person would.

    Operators stand between their operands, which Spark 4 writes as functions; lambdas have arrows,
    and variables that are not named anew at each call; structs name their fields.

    >>> readable("CASE WHEN and(`>`(side.max_bytes, 1), in(join.type, 'CROSS')) THEN 'a' END")
    "CASE WHEN ((side.max_bytes > 1) AND (join.type IN ('CROSS'))) THEN 'a' END"
    >>> readable("exists(side.tables, lambdafunction((x_7 = 't'), x_7))")
    "exists(side.tables, x_1 -> (x_1 = 't'))"
    """
    variables: dict[str, str] = {}
    open_calls = [("", [""])]
    before = ""
    for token in _TOKEN.findall(sql):
        if variable := _VARIABLE.fullmatch(token):
            token = variables.setdefault(token, f"{variable[1]}_{len(variables) + 1}")
        if token == "(":
            open_calls.append(("" if before.isspace() or before == "(" else before, [""]))
        elif token == ")" and len(open_calls) > 1:
            name, arguments = open_calls.pop()
            around = open_calls[-1][1]
            around[-1] = around[-1].removesuffix(name) + _call(name, [a.strip() for a in arguments])
        elif token == "," and len(open_calls) > 1:
            open_calls[-1][1].append("")
        else:
            open_calls[-1][1][-1] += token
        before = token
    return open_calls[0][1][0]


def _call(name: str, arguments: Sequence[str]) -> str:
    first, *others = arguments
    word = name.strip("`")
    if word == "lambdafunction":
        variables = others[0] if len(others) == 1 else f"({', '.join(others)})"
        return f"{variables} -> {first}"
    if word == "in":
        return f"({first} IN ({', '.join(others)}))"
    if word in ("and", "or") or (name != word and not word[:1].isalnum()):
        operator = "NOT" if word == "!" else word.upper()
        return f"({f' {operator} '.join(arguments)})" if others else f"({operator} {first})"
    fields = [_FIELD.fullmatch(argument) for argument in arguments]
    if word == "struct" and all(fields):
        pairs = (f"'{field[2]}', {field[1]}" for field in fields if field)
        return f"named_struct({', '.join(pairs)})"
    return f"{name}({', '.join(arguments)})"


def _differences(spark: SparkSession, point: str, column: Column, text: str) -> list[Row]:
    """The made facts on which they differ, with what they give."""
    from pyspark.sql import functions

    # Where nothing throws, and whatever this session has set: what is compared are two expressions.
    neutral = spark.newSession()
    for key, value in _NEUTRAL.items():
        neutral.conf.set(key, value)
    made = {f"facts{i}": testing.as_json(f) for i, f in enumerate(testing.made_facts(point, _MADE))}
    rows = ", ".join(f"(:{name})" for name in made)
    schema = catalog.facts_schema(point)
    sql = f"SELECT json, from_json(json, '{schema}') facts FROM VALUES {rows} AS t(json)"
    of_text = functions.expr(text)
    return (
        neutral.sql(sql, args=made)
        .select("json", "facts.*")
        .where(~column.eqNullSafe(of_text))
        .select("json", column.alias("of_column"), of_text.alias("of_text"))
        .collect()
    )

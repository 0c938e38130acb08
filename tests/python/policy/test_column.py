"""What Spark writes of a Column, as a person would write it."""

import pytest

from aqepilot.column import is_column, readable


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("(a.b > 1)", "(a.b > 1)"),
        ("`>`(a.b, `*`(a.c, 10))", "(a.b > (a.c * 10))"),
        ("or(and(a.b, `!`(a.c)), isNull(a.d))", "((a.b AND (NOT a.c)) OR isNull(a.d))"),
        ("in(a.b, 'x', 'y')", "(a.b IN ('x', 'y'))"),
        ("(a.b IN ('x', 'y'))", "(a.b IN ('x', 'y'))"),
        ("`~`(a.b)", "(~ a.b)"),
        ("array()", "array()"),
        ("CAST(`-`(a.b, 1) AS DECIMAL(20,2))", "CAST((a.b - 1) AS DECIMAL(20, 2))"),
        ("f(a.b, lambdafunction((x_8 + y_9), x_8, y_9))", "f(a.b, (x_1, y_2) -> (x_1 + y_2))"),
        ("struct(1 AS force, f(2, 3) AS b)", "named_struct('force', 1, 'b', f(2, 3))"),
        ("struct(a.b, a.c)", "struct(a.b, a.c)"),
        ("CASE WHEN (a.b) THEN (1, 2) END AS `a b`", "CASE WHEN (a.b) THEN (1, 2) END AS `a b`"),
    ],
)
def test_operators_lambdas_and_structs_are_written_as_people_do(written, read):
    assert readable(written) == read


@pytest.mark.parametrize(
    "written",
    [
        "'and(a, b) `>`(1, 2) x_17'",
        r"'it\'s (\\, '",
        "`and(a, b)`",
        "side.`x(`",
        "')'",
        "a)b",
        "a, b",
        "x -> y(x, 1)",
    ],
)
def test_strings_and_names_are_left_as_they_are(written):
    assert readable(written) == written


def test_nested_lambdas_keep_their_own_variables_and_get_the_same_names_each_time():
    def written(x, y):
        inner = f"lambdafunction(`>`({x}, {y}), {y})"
        return f"exists(a.b, lambdafunction(exists(a.c, {inner}), {x}))"

    for names in (("x_5", "x_6"), ("x_8", "x_17")):
        assert readable(written(*names)) == "exists(a.b, x_1 -> exists(a.c, x_2 -> (x_1 > x_2)))"


def test_columns_are_told_by_their_class_without_pyspark():
    classic = type("Column", (), {"__module__": "pyspark.sql.classic.column"})
    connect = type("Column", (), {"__module__": "pyspark.sql.connect.column"})
    other = type("Column", (), {"__module__": "polars"})
    assert [is_column(kind()) for kind in (classic, connect, other)] == [True, True, False]
    assert not is_column("x")

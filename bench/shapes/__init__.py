"""Troubles of production, each with counter-shapes that look alike: `make bench ARGS=shapes`.

A module for each; its docstring says what is seen in Spark's UI.
"""

from bench.shapes import (
    explode,
    few_groups,
    hot_key,
    native_rows,
    python_rows,
    small_files,
    tiny_tasks,
    wrong_broadcast,
)
from bench.shapes.shape import Shape

SHAPES: dict[str, Shape] = {
    "hot_key": hot_key.SHAPE,
    "explode": explode.SHAPE,
    "python_rows": python_rows.SHAPE,
    "few_groups": few_groups.SHAPE,
    "native_rows": native_rows.SHAPE,
    "tiny_tasks": tiny_tasks.SHAPE,
    "wrong_broadcast": wrong_broadcast.SHAPE,
    "small_files": small_files.SHAPE,
}

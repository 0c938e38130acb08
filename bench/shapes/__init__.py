"""Troubles of production, each with counter-shapes that look alike: `make bench ARGS=shapes`.

A module for each; its docstring says what is seen in Spark's UI.
"""

from bench.shapes import (
    explode,
    hot_key,
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
    "tiny_tasks": tiny_tasks.SHAPE,
    "wrong_broadcast": wrong_broadcast.SHAPE,
    "small_files": small_files.SHAPE,
}

"""Simulated experiments on all cores: the same ones, however many cores there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, TypeVar

import numpy as np

Found = TypeVar("Found")
_AT_ONCE = 25


def each(of: Callable[..., Found], experiments: int, seed: int, *given: Any) -> list[Found]:
    """Returns what a function of a module says of each experiment.

    Args:
        of: The function; it gets a random generator and what is given.
        experiments: How many.
        seed: Of all draws; each 25 experiments have a generator of their own.
        given: For the function; other processes get a copy.
    """
    begins = range(0, experiments, _AT_ONCE)
    sizes = [min(_AT_ONCE, experiments - begin) for begin in begins]
    some = partial(_some, of, seed, given)
    cores = min(os.cpu_count() or 1, len(sizes))
    # A process takes longer to start than a few experiments do.
    if len(sizes) <= 2 * cores:
        return [found for parts in map(some, begins, sizes) for found in parts]
    with ProcessPoolExecutor(cores) as processes:
        return [found for parts in processes.map(some, begins, sizes) for found in parts]


def _some(
    of: Callable[..., Found], seed: int, given: tuple[Any, ...], begin: int, size: int
) -> list[Found]:
    generator = np.random.default_rng([seed, begin])
    return [of(generator, *given) for _ in range(size)]

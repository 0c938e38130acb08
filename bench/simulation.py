"""Simulated experiments on all cores: the same ones, however many cores there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, TypeVar

import numpy as np

Outcome = TypeVar("Outcome")
_AT_ONCE = 25


def each(
    experiment: Callable[..., Outcome], experiments: int, seed: int, *arguments: Any
) -> list[Outcome]:
    """Returns what a function of a module says of each experiment.

    Args:
        experiment: The function; it gets a random generator and what is given.
        experiments: How many.
        seed: Of all draws; each 25 experiments have a generator of their own.
        arguments: For the function; other processes get a copy.
    """
    begins = range(0, experiments, _AT_ONCE)
    sizes = [min(_AT_ONCE, experiments - begin) for begin in begins]
    some = partial(_some, experiment, seed, arguments)
    cores = min(os.cpu_count() or 1, len(sizes))
    # A process takes longer to start than a few experiments do.
    if len(sizes) <= 2 * cores:
        return [outcome for parts in map(some, begins, sizes) for outcome in parts]
    with ProcessPoolExecutor(cores) as processes:
        return [outcome for parts in processes.map(some, begins, sizes) for outcome in parts]


def _some(
    experiment: Callable[..., Outcome], seed: int, arguments: tuple[Any, ...], begin: int, size: int
) -> list[Outcome]:
    generator = np.random.default_rng([seed, begin])
    return [experiment(generator, *arguments) for _ in range(size)]

"""What was read of a log, so that it is read once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Kept:
    """Values by their keys: the newest few.

    Args:
        most: How many; 1 or more.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: dict[Hashable, Future[Any]] = {}

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Returns a key's value; who asks for one that is being read waits for that.

        Args:
            key: The key.
            read: Reads the value where there is none. If it fails, so does each who waits, and the
                next one reads again.

        >>> kept = Kept(2)
        >>> [kept.get(key, lambda: value) for key, value in [("a", 1), ("b", 2), ("a", 3)]]
        [1, 2, 1]
        """
        with self._lock:
            future = self._values.pop(key, None)
            if is_own := future is None:
                future = Future()
            self._values[key] = future
            if len(self._values) > self._most:
                del self._values[next(iter(self._values))]
        if is_own:
            try:
                future.set_result(read())
            except BaseException as error:
                with self._lock:
                    if self._values.get(key) is future:
                        del self._values[key]
                future.set_exception(error)
        value: T = future.result()
        return value

"""A control file whose only lock is another file, as on the file systems that Hadoop reaches."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from aqepilot.control import store
from aqepilot.control.store import ReplacedMeanwhileError, Store
from aqepilot.errors import AqePilotError

LOCK = ".lock"
_STALE_LOCK_S = 60.0


class LockedFile(Store):
    """A file, and a file of its name and ``.lock`` that is there while a writer is at work.

    The lock is what the creating of a file makes of it. Where two can create one file at once, the
    last of them has it: each waits for `created_after_s` and looks whose it is. Whatever the lock
    is worth, nobody replaces a text other than the one that was read: the file is compared just
    before it is replaced, and the change made again where it is another.

    Attributes:
        created_after_s: How long somebody else's creating of the lock may take to be seen; 0 where
            a file system lets only one create it.
    """

    created_after_s: float

    # Files are named by what follows the control file's own name.

    @abstractmethod
    def _text(self, suffix: str) -> str | None:
        """Returns what is in a file; null where there is none."""

    @abstractmethod
    def _create(self, suffix: str, text: str) -> bool:
        """Makes a file; says whether it was not there."""

    @abstractmethod
    def _delete(self, suffix: str) -> None:
        """Deletes a file, if it is there."""

    @abstractmethod
    def _modified_s(self, suffix: str) -> float | None:
        """Returns when a file was written, by the file system's clock; null where it is none."""

    @abstractmethod
    def _put(self, text: str, check: Callable[[], None]) -> None:
        """Replaces the control file; calls ``check`` last of all before that."""

    def read(self) -> str | None:
        """See `Store.read`."""
        return self._text("")

    def make_folder(self) -> None:
        """See `Store.make_folder`: these file systems make it with the file."""

    def remove(self) -> None:
        """Deletes the file, if it is there.

        Raises:
            AqePilotError: It cannot be deleted.
        """
        self._delete("")

    def replace(self, change: Callable[[str | None], str]) -> None:
        """See `Store.replace`."""
        with self._lock() as own:
            before = self._text("")

            def check() -> None:
                if self._text(LOCK) != own or self._text("") != before:
                    raise ReplacedMeanwhileError

            self._put(change(before), check)

    @contextmanager
    def _lock(self) -> Iterator[str]:
        """Holds the lock; gives what stands in it."""
        own = uuid4().hex
        end = time.monotonic() + store.LOCK_TRIES_S
        while not self._is_taken(own):
            if time.monotonic() > end:
                raise store.is_held_by_another(LOCK)
            if not self._is_cleared():
                time.sleep(0.2)
        try:
            yield own
        finally:
            # Where that fails the file may have been written: the lock counts as left behind soon.
            with suppress(AqePilotError):
                if self._text(LOCK) == own:
                    self._delete(LOCK)

    def _is_taken(self, own: str) -> bool:
        if not self._create(LOCK, own):
            return False
        time.sleep(self.created_after_s)
        return self._text(LOCK) == own

    def _is_cleared(self) -> bool:
        """Deletes a lock that its writer has left behind; says whether it did."""
        whose, now = self._text(LOCK), f".{uuid4().hex}"
        self._create(now, "")
        try:
            times = [self._modified_s(now), self._modified_s(LOCK)]
        finally:
            self._delete(now)
        if times[0] is None or times[1] is None or times[0] - times[1] <= _STALE_LOCK_S:
            return False
        if self._text(LOCK) == whose:
            self._delete(LOCK)
        return True

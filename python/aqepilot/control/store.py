"""Where a control file is: how it is read and replaced without losing another writer's change."""

from __future__ import annotations

import fcntl
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from aqepilot.errors import AqePilotError, Problem

LOCK_TRIES_S = 120.0
# Drivers of all users read the file, and all who may write into its folder take the lock.
_NEW_FILE_MODE = 0o644
_LOCK_MODE = 0o666


class ReplacedMeanwhileError(Exception):
    """Another writer was at the file since it was read; nothing was written."""


class Store(ABC):
    """One control file.

    Attributes:
        settles_after_s: How long after a write to look whether another has replaced it.
    """

    settles_after_s: float

    @abstractmethod
    def read(self) -> str | None:
        """Returns the file's text; null where there is no file.

        Raises:
            AqePilotError: It cannot be read.
        """

    @abstractmethod
    def replace(self, change: Callable[[str | None], str]) -> None:
        """Replaces the text by what ``change`` makes of it, while other writers wait.

        Raises:
            AqePilotError: It cannot be written.
            ReplacedMeanwhileError: It has to be read and changed again.
        """

    @abstractmethod
    def make_folder(self) -> None:
        """Makes the folder that the file is to be in, where writing does not.

        Raises:
            AqePilotError: It cannot be made.
        """


class LocalFile(Store):
    """A file of this machine: writers wait for each other, and readers see a file old or new."""

    settles_after_s = 0.0

    def __init__(self, path: Path) -> None:
        self._named = path

    @property
    def _path(self) -> Path:
        """The file itself where a link names it: the link stays, and has the same lock."""
        return Path(os.path.realpath(self._named))

    def read(self) -> str | None:
        """See `Store.read`."""
        try:
            return self._named.read_text("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise failed("read", self._named, error) from error

    def replace(self, change: Callable[[str | None], str]) -> None:
        """See `Store.replace`."""
        try:
            path = self._path
            with _locked(path.with_name(path.name + ".lock")):
                text = change(self.read())
                written = path.with_name(f".{path.name}.{uuid4().hex}")
                try:
                    with written.open("w", encoding="utf-8") as file:
                        file.write(text)
                        file.flush()
                        _as_before(file.fileno(), path)
                        os.fsync(file.fileno())
                    written.replace(path)
                finally:
                    written.unlink(missing_ok=True)
        except OSError as error:
            raise failed("written", self._named, error) from error

    def make_folder(self) -> None:
        """See `Store.make_folder`."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failed("written", self._named, error) from error


def _as_before(written: int, path: Path) -> None:
    """Gives a new file the mode of the one that it replaces, and as far as it may its owner."""
    try:
        before = path.stat()
    except FileNotFoundError:
        os.fchmod(written, _NEW_FILE_MODE)
        return
    # Only root gives a file away; others can give it a group that they are in.
    for owner in ((before.st_uid, before.st_gid), (-1, before.st_gid)):
        with suppress(PermissionError):
            os.fchown(written, *owner)
            break
    os.fchmod(written, before.st_mode & 0o777)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock on a file, which whoever comes first makes for all users."""
    lock = _opened(path)
    try:
        end = time.monotonic() + LOCK_TRIES_S
        while not _is_locked(lock):
            if time.monotonic() > end:
                raise is_held_by_another(path)
            time.sleep(0.005)
        yield
    finally:
        os.close(lock)


def _opened(path: Path) -> int:
    # In a folder that is sticky, O_CREAT fails on a file of another user; and NFS locks for writing
    # only what is open for writing.
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDWR):
        with suppress(PermissionError):
            lock = os.open(path, flags, _LOCK_MODE)
            with suppress(PermissionError):  # its owner has done so
                os.fchmod(lock, _LOCK_MODE)
            return lock
        if not path.exists():
            message = "Permission denied: its lock cannot be made beside it"
            raise PermissionError(f"{message}, in {path.parent.absolute()}")
    return os.open(path, os.O_RDONLY)


def _is_locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held_by_another(lock: object) -> AqePilotError:
    """Returns what is raised when other writers do not come to an end."""
    message = f"{lock} is held by another writer for {LOCK_TRIES_S:.0f} s."
    return AqePilotError(Problem("CONTROL_NOT_WRITTEN", message))


def failed(what: str, path: object, error: object) -> AqePilotError:
    """Returns what is raised when a file system refuses."""
    message = f"the control file cannot be {what}: {error}"
    return AqePilotError(Problem("CONTROL_UNREACHABLE", message, str(path)))

"""Asks Python functions on behalf of a Spark driver, in a process of its own.

The jar carries this file and starts it. Needs nothing but Python's standard library. Frames go
over anonymous pipes, which nobody but the driver holds: a length of 4 bytes, the length of a JSON
object, the object, then the bytes of its long arrays in the machine's byte order. An empty frame
says that a question comes soon. What the functions print goes to standard error, and so to the
driver's log.

The functions see the facts as `Facts`, the same in plain tests (`aqepilot.testing.facts`).
"""

from __future__ import annotations

import contextlib
import difflib
import gc
import hashlib
import importlib
import importlib.util
import io
import json
import os
import pickle
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

PROTOCOL = 1
LONGS = "$longs"
MOST_ANSWER_BYTES = 1 << 20
MOST_TRACEBACK_CHARS = 2000


class Facts:
    """What is known at a decision point, or a group of it; read-only.

    Facts are attributes: ``facts.side.max_bytes``. None means that Spark does not know. Arrays are
    tuples; arrays of bytes by partition are memory views of 64-bit integers, which
    ``numpy.asarray`` takes without copying.
    """

    __slots__ = ("_path", "_values")

    def __init__(self, values: Mapping[str, Any], path: str = "facts") -> None:
        object.__setattr__(self, "_values", dict(values))
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        values: dict[str, Any] = object.__getattribute__(self, "_values")
        path: str = object.__getattribute__(self, "_path")
        try:
            value = values[name]
        except KeyError:
            near = difflib.get_close_matches(name, values, 1)
            instead = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(values)}."
            raise AttributeError(f"{path} has no fact {name}{instead}") from None
        if isinstance(value, dict):
            value = values[name] = Facts(value, f"{path}.{name}")
        elif isinstance(value, list):
            items = (
                Facts(v, f"{path}.{name}[{i}]") if isinstance(v, dict) else v
                for i, v in enumerate(value)
            )
            value = values[name] = tuple(items)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{self._path} is read-only")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{self._path} is read-only")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._values]

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in self._values)
        return f"Facts({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Facts)
            and self._values.keys() == other._values.keys()
            and all(getattr(self, name) == getattr(other, name) for name in self._values)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Facts, (self._values, self._path))


class AnswerError(TypeError):
    """What a function returned is no decision."""


def plain(answer: Any) -> Any:
    """Returns a decision as JSON has it.

    Args:
        answer: None, a string, a number, a sequence or array of numbers, a mapping of a decision's
            fields, or an object with an ``_asdict`` or ``asdict`` method (the classes of
            `aqepilot.points`). Fields that are None are left out.

    Raises:
        AnswerError: It is something else; says what.

    >>> plain({"skew_factor": 2.0, "force": None})
    {'skew_factor': 2.0}
    >>> import array
    >>> plain(array.array("q", [1, 2]))
    [1, 2]
    """
    if answer is None or isinstance(answer, (str, bool, int, float)):
        return answer
    as_dict = getattr(answer, "_asdict", None) or getattr(answer, "asdict", None)
    if callable(as_dict):
        answer = as_dict()
    if isinstance(answer, Mapping):
        fields = {key: plain(value) for key, value in answer.items()}
        if not all(isinstance(key, str) for key in fields):
            raise AnswerError("a decision's fields are named by strings.")
        return {key: value for key, value in fields.items() if value is not None}
    tolist = getattr(answer, "tolist", None)  # numpy, array, memoryview
    if callable(tolist) and not isinstance(answer, type):
        return plain(tolist())
    if isinstance(answer, Sequence) and not isinstance(answer, (bytes, bytearray)):
        return [plain(item) for item in answer]
    raise AnswerError(f"a {type(answer).__name__} is no decision.")


class _Opened:
    """The files that are read while it is entered, the interpreter's and its packages' left out."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self._on = False
        sys.addaudithook(self._see)

    def __enter__(self) -> _Opened:
        self.paths = set()
        self._on = True
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if self._on and event == "open" and isinstance(args[0], (str, os.PathLike)):
            mode = args[1]
            if mode is None or (isinstance(mode, str) and not set(mode) & set("wax+")):
                self.paths.add(os.path.abspath(os.fspath(args[0])))

    def sources(self) -> set[str]:
        """Of what was compiled, the file that it was compiled from."""
        files = set()
        for path in self.paths:
            if path.endswith(".pyc"):
                with contextlib.suppress(ValueError):
                    path = importlib.util.source_from_cache(path)
            if not _is_of_interpreter(path):
                files.add(path)
        return files


def _is_of_interpreter(path: str) -> bool:
    homes = {os.path.realpath(home) for home in (sys.prefix, sys.base_prefix, "/proc", "/sys")}
    return any(os.path.realpath(path).startswith(home + os.sep) for home in homes)


def _revision(files: Iterable[str], pickled: memoryview) -> str:
    """A hash of a function's pickle and of its files' names and content."""
    total = hashlib.sha256(pickled)
    for path in sorted(filter(os.path.isfile, files)):
        content = hashlib.sha256()
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                content.update(chunk)
        total.update(os.path.basename(path).encode() + b"\0" + content.digest())
    return total.hexdigest()


class _Worker:
    def __init__(self, requests: BinaryIO, answers: BinaryIO, group: int) -> None:
        self._requests, self._answers, self._group = requests, answers, group
        self._functions: dict[int, Callable[[Facts], Any]] = {}
        self._opened = _Opened()
        self._asked = bytearray()

    def serve(self) -> None:
        hello = {"protocol": PROTOCOL, "python": sys.version.split()[0], "pid": os.getpid()}
        pipe_bytes = _widened(self._requests.fileno())
        self._send({**hello, "pipe_bytes": pipe_bytes, "group": self._group})
        while (head := self._exactly(4)) is not None:
            frame = self._exactly(struct.unpack(">I", head)[0])
            if frame is None:
                return
            if not frame:
                self._rehearse()
                continue
            request, blob = _request(frame)
            # The kernel ends this process if a function holds on long after the driver is gone.
            signal.setitimer(signal.ITIMER_REAL, request["seconds"])
            try:
                if "load" in request:
                    answer = self._load(request, blob)
                else:
                    answer = self._ask(request, blob)
                    self._asked = frame
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            self._send({"id": request["id"], **answer})

    def _rehearse(self) -> None:
        """Does again what the last ask took, but for the function: code is slow when it is cold."""
        if self._asked:
            request, blob = _request(self._asked)
            Facts(_with_longs(request["facts"], blob))
            json.dumps({"id": request["id"], "answer": json.dumps(plain(None))})

    def _load(self, request: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        for forgotten in request["forget"]:
            self._functions.pop(forgotten, None)
        try:
            for path in request["path"]:
                if path not in sys.path:
                    sys.path.append(path)
            own = set()
            with self._opened:
                if blob:
                    function = pickle.loads(blob)
                else:
                    module = importlib.import_module(request["module"])
                    function = _attribute(module, request["function"])
                    own = {getattr(module, "__file__", None) or ""}
            revision = _revision(self._opened.sources() | own, blob)
            if not callable(function):
                raise TypeError(f"{request['load']} is a {type(function).__name__}, not a function")
            declared = getattr(function, "aqepilot_point", None)
            if declared not in (None, request["point"]):
                raise ValueError(f"{request['load']} is for {declared}, not for {request['point']}")
        except BaseException as error:
            return {"error": _error_text(error), "trace": _trace(error)}
        self._functions[request["function_id"]] = function
        gc.freeze()  # or a collection goes through all that was loaded, in the middle of an ask
        return {"revision": revision}

    def _ask(self, request: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        try:
            facts = Facts(_with_longs(request["facts"], blob))
            answer = self._functions[request["function_id"]](facts)
        except BaseException as error:
            return {"error": _error_text(error), "trace": _trace(error)}
        try:
            text = json.dumps(plain(answer))
        except BaseException as error:
            return {"wrong": _error_text(error)}
        if len(text) > MOST_ANSWER_BYTES:
            return {"wrong": f"the answer has {len(text)} characters, {MOST_ANSWER_BYTES} at most."}
        return {"answer": text}

    def _send(self, answer: dict[str, Any]) -> None:
        text = json.dumps(answer).encode()
        self._answers.write(struct.pack(">I", len(text)) + text)
        self._answers.flush()

    def _exactly(self, size: int) -> bytearray | None:
        """Reads so many bytes; None at the end: the driver is gone."""
        data = bytearray(size)
        view = memoryview(data)
        done = 0
        while done < size:
            read = self._requests.readinto(view[done:])  # type: ignore[attr-defined]
            if not read:
                return None
            done += read
        return data


def _request(frame: bytearray) -> tuple[dict[str, Any], memoryview]:
    size = struct.unpack_from(">I", frame)[0]
    return json.loads(bytes(frame[4 : 4 + size])), memoryview(frame)[4 + size :].toreadonly()


def _with_longs(value: Any, blob: memoryview) -> Any:
    if isinstance(value, dict):
        if LONGS in value:
            start, count = value[LONGS]
            return blob[start : start + 8 * count].cast("q")
        return {key: _with_longs(item, blob) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_longs(item, blob) for item in value]
    return value


def _attribute(module: Any, path: str) -> Any:
    value = module
    for name in path.split("."):
        if not hasattr(value, name):
            names = [n for n in vars(value) if callable(getattr(value, n)) and n[0] != "_"]
            near = difflib.get_close_matches(name, names, 1)
            instead = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(f"module {module.__name__} has no function {path}{instead}")
        value = getattr(value, name)
    return value


def _error_text(error: BaseException) -> str:
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    return last[:500]


def _trace(error: BaseException) -> str:
    """The function's own part of the traceback, its end if it is long."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename != __file__ and "importlib" not in f.filename]
    lines = traceback.format_list(own) + traceback.format_exception_only(type(error), error)
    return "".join(lines)[-MOST_TRACEBACK_CHARS:]


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # nor may a function raise it again
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _widened(pipe: int) -> int:
    """Widens a pipe as far as any account may; returns how many bytes it holds, 0 if unknown."""
    get, put = 1032, 1031  # Linux; in `fcntl` by name since Python 3.10
    try:
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, put, 1 << 20)
        return fcntl.fcntl(pipe, get)
    except (ImportError, OSError):
        return 0


def _only_here(descriptors: Sequence[int]) -> None:
    """Keeps a function's child processes from holding the driver's ends open."""
    if hasattr(os, "register_at_fork"):

        def close() -> None:
            for descriptor in descriptors:
                os.close(descriptor)

        os.register_at_fork(after_in_child=close)


def _own_group() -> int:
    """Makes a process group of this process, for the driver to end with all its children.

    Returns:
        The group's id, 0 where there are no groups.
    """
    try:
        os.setpgid(0, 0)
        return os.getpgrp()
    except (AttributeError, OSError):
        return 0


def _end(group: int) -> None:
    """Ends this process and its children; what functions left for its exit is not waited for."""
    if group:
        os.killpg(group, signal.SIGKILL)
    os._exit(0)


def main(memory: int) -> None:
    """Serves the driver at the other end of standard input and output until that is gone.

    Args:
        memory: Bytes of data that this process may have (RLIMIT_DATA, where there is one).
    """
    _limit_memory(memory)
    group = _own_group()
    requests, answers = os.dup(0), os.dup(1)
    _only_here([requests, answers])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    sys.stdin = io.StringIO()
    sys.stdout = sys.stderr
    sys.argv = [""]
    with io.FileIO(requests) as asked, io.BufferedWriter(io.FileIO(answers, "w")) as replies:
        _Worker(asked, replies, group).serve()
        _end(group)

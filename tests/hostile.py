"""Policies that would harm a driver: mistakes in SQL texts, and hostile Python functions.

`python/policy/test_live_hostile_policies.py` runs all of them;
`docs/evidence/hostile-policies.md` has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

POINT = "dynamic_join_selection"
SECRETS = {
    "environment": "hunter2-of-the-environment",
    "setting": "hunter2-of-the-settings",
    "policy": "hunter2-of-a-policy",
}
ENVIRONMENT = "HOSTILE_TEST_SECRET"
SETTING = "spark.hadoop.hostile.test.secret.key"


class Case(NamedTuple):
    """A policy that would harm a driver, by mistake or on purpose.

    Attributes:
        tries: What it would do.
        text: A SQL text, or the source of a module with a function `choose`.
        expected: The reason of its decisions; or the code with which the text is refused.
        point: The decision point.
        on: What comes of it on some Spark minors, where that differs.
    """

    tries: str
    text: str
    expected: str
    point: str = POINT
    on: Mapping[str, str] = MappingProxyType({})

    def comes_to(self, minor: str) -> str:
        return self.on.get(minor, self.expected)


def _grown(start: str, times: int, grow: str) -> str:
    """``start`` made larger by a lambda within a lambda; ``grow`` says how, of ``{v}``."""
    for i in range(times):
        start = f"transform(array({start}), v{i} -> {grow.format(v=f'v{i}')})[0]"
    return start


def _if(condition: str) -> str:
    return f"CASE WHEN {condition} THEN 'SHUFFLE_HASH' END"


_BACKTRACKS = f"concat(join.type, '{'a' * 300}!') RLIKE '{'a*' * 8}b'"
_LONGS = _grown("array(side.num_partitions)", 17, "concat({v}, {v})")
_FIFTY = ", ".join(["{v}"] * 50)

SQL = {
    "lambdas over each other": Case(
        "run for ever",
        f"transform(array({_LONGS}), a -> "
        + _if("exists(a, x -> exists(a, y -> exists(a, z -> x + y + z < 0)))")
        + ")[0]",
        "EVALUATION_DEADLINE",
    ),
    "strings of strings": Case(
        "fill memory", _grown("join.type", 20, f"concat({_FIFTY})"), "EVALUATION_TOO_LARGE"
    ),
    "repeat": Case("fill memory", "repeat('x', 2000000000)", "FUNCTION_NOT_ALLOWED"),
    "sequence": Case("fill memory", "sequence(1, 1000000000)", "FUNCTION_NOT_ALLOWED"),
    "array_repeat": Case("fill memory", "array_repeat('x', 2000000000)", "FUNCTION_NOT_ALLOWED"),
    "arrays of the same array": Case(
        "run for ever in one call, which goes through 50 to the power of 9 texts",
        _if(f"hash({_grown('join.type', 9, f'array({_FIFTY})')}) = 1"),
        "EVALUATION_TOO_LARGE",
    ),
    "backtracking": Case("run for ever in one call", _if(_BACKTRACKS), "EVALUATION_DEADLINE"),
    "a regular expression that recurs": Case(
        "exhaust the stack",
        _if(f"concat('{'ab' * 100_000}', join.type) RLIKE '^(a|b)*$'"),
        "EVALUATION_FAILED",
    ),
    "round to a size": Case(
        "have a power of ten computed for hours",
        _if("round(side.num_partitions / 3D, 100000000) > 1"),
        "FUNCTION_NOT_ALLOWED",
    ),
    "a set of structs": Case(
        "compare each partition with each other one",
        _if("size(array_distinct(transform(side.bytes_by_partition_id, b -> struct(b)))) > 1"),
        "FUNCTION_NOT_ALLOWED",
    ),
    "comments that never close": Case(
        "have the reader go back for hours", "/*a" * 300_000, "SYNTAX"
    ),
    "10,000 brackets": Case(
        "exhaust the parser's stack", "(" * 10_000 + "1" + ")" * 10_000, "TOO_COMPLEX"
    ),
    "100,000 sums": Case(
        "the same", _if(" + ".join(["side.max_bytes"] * 60_000) + " > 1"), "TOO_COMPLEX"
    ),
    "a type in a type": Case(
        "the same", f"CAST(null AS {'array<' * 20_000}int{'>' * 20_000})", "TOO_COMPLEX"
    ),
    "10,000 branches": Case(
        "the same",
        f"CASE{''.join(f' WHEN side.max_bytes = {i} THEN {POINT!r}' for i in range(10_000))} END",
        "TOO_COMPLEX",
    ),
    "200,000 values": Case(
        "keep the analyser busy",
        _if(f"side.max_bytes IN ({', '.join(['7'] * 200_000)})"),
        "TOO_COMPLEX",
    ),
    "50 MB": Case("fill memory with the text itself", f"'{'x' * 50_000_000}'", "TOO_LONG"),
    "a wide struct": Case(
        "have 40,000 fields read",
        _if(f"from_json(join.type, '{', '.join(f'c{i} INT' for i in range(40_000))}').c1 > 0"),
        "NULL_ANSWER",
    ),
    "a division by zero": Case(
        "fail the query", _if("1 / (side.max_bytes - side.max_bytes) > 0"), "EVALUATION_FAILED"
    ),
    "raise_error": Case("fail the query", "raise_error('no')", "FUNCTION_NOT_ALLOWED"),
    "assert_true": Case("fail the query", "assert_true(false)", "FUNCTION_NOT_ALLOWED"),
    "java_method": Case("end the driver", "java_method('java.lang.System', 'exit', 1)", "NOT_PURE"),
    "try_reflect": Case(
        "change the locale",
        "try_reflect('java.util.Locale', 'setDefault', 'tr')",
        "NOT_PURE",
        on={"3.5": "UNKNOWN_FUNCTION"},
    ),
    "user and file": Case(
        "read what is no fact", "concat(current_user(), input_file_name())", "NOT_PURE"
    ),
    "uuid": Case("answer by chance", "uuid()", "NOT_PURE"),
    "variables of the environment": Case(
        "print secrets", f"'${{env:{ENVIRONMENT}}} ${{{SETTING}}}'", "UNKNOWN_WORD"
    ),
    "a subquery": Case("read a table", "(SELECT max(w) FROM r)", "NOT_SCALAR"),
    "a session's function": Case("run code", "hostile_udf(side.max_bytes)", "UNKNOWN_FUNCTION"),
    "xpath": Case(
        "have entities expanded",
        "xpath_string('<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>', 'a')",
        "FUNCTION_NOT_ALLOWED",
    ),
    "aes_decrypt": Case("decrypt", "aes_decrypt(unhex('00'), 'key')", "FUNCTION_NOT_ALLOWED"),
    "a time zone": Case(
        "change the time", "from_utc_timestamp('2026-01-01', 'Asia/Pyongyang')", "NOT_PURE"
    ),
    "Turkish sentences": Case(
        "change the locale", "sentences(lower(join.type), 'tr', 'TR')[0][0]", "UNKNOWN_WORD"
    ),
    "NUL and text from right to left": Case(
        "confuse the parser", "'SHUFFLE\u0000_HASH' \u0000 \u202e", "SYNTAX"
    ),
    "16 MB of answer": Case(
        "fill the record",
        _grown("join.type", 21, "concat({v}, {v})"),
        "UNKNOWN_WORD",
    ),
    "dear for every second ask": Case(
        "stay below what opens the breaker",
        f"CASE WHEN side.is_left AND {_BACKTRACKS} THEN 'SHUFFLE_HASH' ELSE 'SHUFFLE_MERGE' END",
        "EVALUATION_DEADLINE",
    ),
    "fewer than no partitions": Case(
        "break the plan", "-2147483647", "OUT_OF_RANGE", "shuffle_partitions"
    ),
    "not a number": Case(
        "break the arithmetic",
        "named_struct('skew_factor', double('NaN'))",
        "OUT_OF_RANGE",
        "skew_join",
    ),
}

_ANSWER = "\n    return 'SHUFFLE_HASH'\n"


def _function(*lines: str, before: str = "") -> str:
    return f"{before}\ndef choose(facts):\n    " + "\n    ".join(lines) + _ANSWER


PYTHON = {
    "while true": Case("run for ever", _function("while True: pass"), "PYTHON_DEADLINE"),
    "a loop in C": Case(
        "run for ever where Python cannot end it",
        _function("sum(range(10 ** 15))"),
        "PYTHON_DEADLINE",
    ),
    "backtracking in C": Case(
        "the same",
        _function("re.match('(a|aa)+$', 'a' * 60 + '!')", before="import re"),
        "PYTHON_DEADLINE",
    ),
    "sleep": Case("hang", _function("time.sleep(3600)", before="import time"), "PYTHON_DEADLINE"),
    "deadlock": Case(
        "wait for itself",
        _function(
            "lock.acquire()", "lock.acquire()", before="import threading\nlock = threading.Lock()"
        ),
        "PYTHON_DEADLINE",
    ),
    "a stopped process": Case(
        "hang as nobody can wake it",
        _function("os.kill(os.getpid(), signal.SIGSTOP)", before="import os, signal"),
        "PYTHON_DEADLINE",
    ),
    "no signal, no alarm": Case(
        "outlive what would end it",
        _function(
            "for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:",
            "    signal.signal(s, signal.SIG_IGN)",
            "signal.setitimer(signal.ITIMER_REAL, 0)",
            "while True: pass",
            before="import signal",
        ),
        "PYTHON_DEADLINE",
    ),
    "a huge allocation": Case("fill memory", _function("bytearray(1 << 40)"), "PYTHON_RAISED"),
    "memory without a limit": Case(
        "fill memory after lifting the limit",
        _function(
            "resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)",
            before="import resource",
        ),
        "PYTHON_RAISED",
    ),
    "infinite recursion": Case("exhaust the stack", _function("choose(facts)"), "PYTHON_RAISED"),
    "_exit": Case("end the process", _function("os._exit(0)", before="import os"), "PYTHON_DIED"),
    "exit": Case("end the process", _function("sys.exit(3)", before="import sys"), "PYTHON_RAISED"),
    "abort": Case("leave a core dump", _function("os.abort()", before="import os"), "PYTHON_DIED"),
    "KeyboardInterrupt": Case(
        "throw what is no Exception", _function("raise KeyboardInterrupt"), "PYTHON_RAISED"
    ),
    "GeneratorExit": Case("the same", _function("raise GeneratorExit"), "PYTHON_RAISED"),
    "an error whose text raises": Case(
        "fail who tells it",
        _function(
            "raise Odd",
            before="class Odd(Exception):\n    def __str__(self): raise Odd",
        ),
        "PYTHON_RAISED",
    ),
    "an error whose text hangs": Case(
        "hang who tells it",
        _function(
            "raise Odd",
            before="class Odd(Exception):\n    def __str__(self):\n        while True: pass",
        ),
        "PYTHON_DEADLINE",
    ),
    "an error of 100 MB": Case(
        "fill the record", _function("raise ValueError('x' * 100_000_000)"), "PYTHON_RAISED"
    ),
    "all descriptors closed": Case(
        "cut the pipes", _function("os.closerange(0, 4096)", before="import os"), "PYTHON_DIED"
    ),
    "garbage in the pipe": Case(
        "confuse the driver",
        _function(
            "for fd in range(3, 20):",
            "    try: os.write(fd, b'\\x00\\x00\\x10\\x00' + b'[' * 4096)",
            "    except OSError: pass",
            before="import os",
        ),
        "PYTHON_DIED",
    ),
    "an answer ahead of the question": Case(
        "answer what is asked next, and hang",
        _function(
            "request = sys._getframe(1).f_locals['request']",
            "text = json.dumps({'id': request['id'], 'answer': 'null'}).encode()",
            "for fd in range(3, 20):",
            "    try: os.write(fd, struct.pack('>I', len(text)) + text)",
            "    except OSError: pass",
            "signal.setitimer(signal.ITIMER_REAL, 0)",
            "while True: pass",
            before="import json, os, signal, struct, sys",
        ),
        "PYTHON_DEADLINE",
    ),
    "a pipe that is too small": Case(
        "the same, and have the driver hang as it writes the next question",
        _function(
            "request = sys._getframe(1).f_locals['request']",
            "text = json.dumps({'id': request['id'], 'answer': 'null'}).encode()",
            "for fd in range(3, 20):",
            "    try: fcntl.fcntl(fd, 1031, 4096)",
            "    except OSError: pass",
            "    try: os.write(fd, struct.pack('>I', len(text)) + text)",
            "    except OSError: pass",
            "signal.setitimer(signal.ITIMER_REAL, 0)",
            "while True: pass",
            before="import fcntl, json, os, signal, struct, sys",
        ),
        "PYTHON_DEADLINE",
        on={},
    ),
    "print without an end": Case(
        "fill the driver's log",
        _function(
            "threading.Thread(target=talk, daemon=True).start()",
            before="import threading\ndef talk():\n"
            "    while True: print('hostile ' * 100, flush=True)",
        ),
        "APPLIED",
    ),
    "standard input": Case(
        "read what is the driver's",
        _function(
            "assert sys.stdin.read() == '' and os.read(0, 1) == b''", before="import os, sys"
        ),
        "APPLIED",
    ),
    "children": Case(
        "outlive the session",
        _function(
            "for _ in range(5):",
            "    if os.fork() == 0:",
            "        signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            "        time.sleep(3600)",
            before="import os, signal, time",
        ),
        "APPLIED",
    ),
    "children of a process that is gone": Case(
        "outlive the session without a parent",
        _function(
            "for _ in range(5):",
            "    subprocess.Popen(['sleep', '3600'])",
            "os._exit(1)",
            before="import os, subprocess",
        ),
        "PYTHON_DIED",
    ),
    "threads and hooks at exit": Case(
        "never end",
        _function(
            "atexit.register(time.sleep, 3600)",
            "threading.Thread(target=time.sleep, args=(3600,)).start()",
            before="import atexit, threading, time",
        ),
        "APPLIED",
    ),
    "locale, folder and path": Case(
        "change what the process has",
        _function(
            "locale.setlocale(locale.LC_ALL, 'C')",
            "os.chdir('/')",
            "sys.path.clear()",
            "os.environ.clear()",
            before="import locale, os, sys",
        ),
        "APPLIED",
    ),
    "json without dumps": Case(
        "break what the worker uses",
        _function("json.dumps = None", before="import json"),
        "PYTHON_DIED",
    ),
    "struct without pack": Case(
        "the same", _function("struct.pack = None", before="import struct"), "PYTHON_DIED"
    ),
    "no built-in functions": Case(
        "the same",
        _function(
            "for name in ('len', 'isinstance', 'dict'): setattr(builtins, name, None)",
            before="import builtins",
        ),
        "PYTHON_DIED",
    ),
    "an answer that lies about its type": Case(
        "fail who looks at it",
        "class Odd:\n    @property\n    def __class__(self): raise KeyboardInterrupt\n"
        "def choose(facts): return Odd()\n",
        "PYTHON_WRONG_ANSWER",
    ),
    "a list of itself": Case(
        "exhaust the stack",
        "def choose(facts):\n    answer = []\n    answer.append(answer)\n    return answer\n",
        "PYTHON_WRONG_ANSWER",
    ),
    "a generator": Case(
        "answer for ever", "def choose(facts):\n    yield 'SHUFFLE_HASH'\n", "PYTHON_WRONG_ANSWER"
    ),
    "a coroutine": Case("the same", "async def choose(facts): pass\n", "PYTHON_WRONG_ANSWER"),
    "half a surrogate": Case("be no text", "def choose(facts): return '\\ud800'\n", "UNKNOWN_WORD"),
    "bytes": Case("the same", "def choose(facts): return b'SHUFFLE_HASH'\n", "PYTHON_WRONG_ANSWER"),
    "10 to the power of 400": Case(
        "be no number",
        "def choose(facts): return 10 ** 400\n",
        "PYTHON_WRONG_ANSWER",
        "shuffle_partitions",
    ),
    "infinity": Case(
        "be no number",
        "def choose(facts): return {'skew_factor': float('-inf')}\n",
        "OUT_OF_RANGE",
        "skew_join",
    ),
    "a dict of 100,000 fields": Case(
        "fill memory",
        "def choose(facts): return dict.fromkeys(map(str, range(10 ** 5)), 1)\n",
        "PYTHON_WRONG_ANSWER",
        "skew_join",
    ),
    "wrong every second time": Case(
        "stay below what opens the breaker",
        "import itertools, time\nturn = itertools.count()\ndef choose(facts):\n"
        "    if next(turn) % 2: time.sleep(3600)\n    return 'SHUFFLE_HASH'\n",
        "PYTHON_DEADLINE",
    ),
    "a change of its facts": Case(
        "mislead who is asked next", _function("facts.side.max_bytes = 0"), "PYTHON_RAISED"
    ),
    "the environment": Case(
        "print secrets",
        f"import os\ndef choose(facts): raise ValueError(os.environ['{ENVIRONMENT}'])\n",
        "PYTHON_RAISED",
    ),
    "import that hangs": Case(
        "have the application wait",
        "import time\ntime.sleep(3600)\n" + _function("pass"),
        "PYTHON_LOAD_FAILED",
    ),
    "import that exits": Case(
        "end the process", "import os\nos._exit(0)\n" + _function("pass"), "PYTHON_LOAD_FAILED"
    ),
    "import that raises": Case(
        "throw what is no Exception", "raise SystemExit\n" + _function("pass"), "PYTHON_LOAD_FAILED"
    ),
    "import that is no function": Case(
        "be asked all the same", "choose = 'SHUFFLE_HASH'\n", "PYTHON_LOAD_FAILED"
    ),
}

"""Writes what the documentation says of names, from where the names are: `make docs`.

Between `<!-- generated: x -->` and `<!-- end -->` stands what `BLOCKS["x"]` returns. Without an
argument every page is brought up to date; the tests call `refreshed` to see whether one is not.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

import aqepilot
import aqepilot.demo
from aqepilot import catalog, recipes
from aqepilot.analysis.experiment.job_runs import JobRuns
from aqepilot.autopilot.definition import Definition as Autopilot
from aqepilot.autopilot.reasons import REASONS as STEP_REASONS
from aqepilot.cli import main as cli
from aqepilot.eventlog.frames import columns as log_columns
from aqepilot.history import columns as history_columns
from aqepilot.toml import tomllib

ROOT = Path(__file__).resolve().parent.parent
REASONS = ROOT / "jvm/src/main/resources/org/apache/spark/sql/aqepilot/reasons"
sys.path.append(str(ROOT / "tests"))

import hostile  # noqa: E402
from smoke import jar_matrix  # noqa: E402
from spark_suites import ledger  # noqa: E402

EVENTS = ROOT / "jvm/src/main/scala/io/aqepilot/log/Events.scala"
BLOCK = re.compile(r"(<!-- generated: ([a-z_]+)(?: (\w+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def refreshed(text: str) -> str:
    """Returns a page with its generated parts anew."""
    return BLOCK.sub(lambda m: f"{m[1]}\n{generated(m[2], m[3])}\n\n{m[4]}", text)


def generated(name: str, point: str | None) -> str:
    """Returns a generated part; those of a decision point name it."""
    return POINT_BLOCKS[name](catalog.point(point)) if point else BLOCKS[name]()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _coded(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    return [[_code(first), *rest] for first, *rest in rows]


def _spark_rows() -> list[dict[str, str]]:
    table = (ROOT / "python/aqepilot/spark_versions.csv").read_text("utf-8")
    return list(csv.DictReader(table.splitlines()))


def sparks() -> str:
    rows = _spark_rows()
    minors = dict.fromkeys(row["minor"] for row in rows)
    lines = []
    for minor in minors:
        own = [row for row in rows if row["minor"] == minor]
        tried = {row["newest"] for row in own} | {
            patch for row in own for patch in row["smoke"].split(";") if patch
        }
        in_full = any(row["role"] == "full" for row in own)
        lines.append(
            [
                minor,
                ", ".join(row["scala"] for row in own),
                ", ".join(sorted(tried)),
                "all" if in_full else "smoke test: a policy under spark-submit",
            ]
        )
    return _table(("Spark", "Scala", "Tested releases", "Tests on the newest"), lines)


def answers(point: catalog.Point) -> str:
    tables = []
    if point.fields:
        tables.append(_table(("Field", "Type", "Meaning"), _coded(point.fields)))
    if point.words:
        tables.append(_table(("Answer", "Meaning"), _coded(point.words)))
    return "\n\n".join(tables) or _table(
        ("Answer", "Meaning"), [(_code(point.answer_type), point.answer_meaning)]
    )


def facts(point: catalog.Point) -> str:
    """A point's own facts by group; two groups of the same facts share a table."""
    common = _common()
    return _facts(fact for fact in point.facts if fact not in common)


def commonfacts() -> str:
    return _facts(_common())


def _common() -> list[catalog.Fact]:
    """The facts that every point has."""
    first, *others = catalog.points()
    return [fact for fact in first.facts if all(fact in point.facts for point in others)]


def _facts(facts: Iterable[catalog.Fact]) -> str:
    groups: dict[str, list[catalog.Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.path.split(".")[0], []).append(fact)
    same: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for name, own in groups.items():
        leaves = tuple((f.path.partition(".")[2], f.type, f.meaning) for f in own)
        same.setdefault(leaves, []).append(name)
    parts = []
    for leaves, names in same.items():
        rows = [
            [", ".join(_code(f"{name}.{path}") for name in names), _type(kind), meaning]
            for path, kind, meaning in leaves
        ]
        title = " and ".join(_code(name) for name in names)
        parts.append(f"### {title}\n\n{_table(('Fact', 'Type', 'Meaning'), rows)}")
    return "\n\n".join(parts)


def _type(kind: str) -> str:
    """A type, without the fields of a history, which have a table of their own."""
    for members in (catalog.history(), catalog.query_history()):
        fields = ",".join(f"{fact.path}:{fact.type}" for fact in members)
        kind = kind.replace(f"struct<{fields}>", "struct")
    return kind


def history() -> str:
    """What past runs of a sub-plan tell, and what those of a query do."""
    rows = [(_code(f"….history.{f.path}"), f.type, f.meaning) for f in catalog.history()]
    own = [(_code(f"query.history.{f.path}"), f.type, f.meaning) for f in catalog.query_history()]
    return "\n\n".join(_table(("Fact", "Type", "Meaning"), facts) for facts in (rows, own))


def reasons() -> str:
    return _table(("Reason", "Meaning"), _coded(catalog.reasons().items()))


def remedies() -> str:
    """What to do about each reason of a decision and each problem of the set-up."""
    known = json.loads((REASONS / "remedies.json").read_text("utf-8"))
    parts = []
    for title, kind, codes in (
        ("Reasons of decisions", "reasons", catalog.reasons()),
        ("Problems of the set-up", "problems", catalog.problems()),
    ):
        rows = [(_code(code), meaning, known[kind][code]) for code, meaning in codes.items()]
        parts.append(f"## {title}\n\n{_table(('Code', 'Meaning', 'What you can do'), rows)}")
    return "\n\n".join(parts)


def api() -> str:
    """What `import aqepilot` gives: functions with their arguments, classes, modules."""
    functions, classes, modules = list[list[str]](), list[list[str]](), list[list[str]]()
    for name in sorted(aqepilot.__all__):
        value = getattr(aqepilot, name)
        summary = _summary(value)
        if inspect.ismodule(value):
            modules.append([f"aqepilot.{name}", summary])
        elif inspect.isclass(value):
            classes.append([f"aqepilot.{name}", summary])
        elif callable(value):
            functions.append([f"aqepilot.{name}({_arguments(value)})", summary])
    methods = [
        [f"{owner}.{name}({_arguments(value, skip=1)})", _summary(value)]
        for owner, kind in (("log", aqepilot.Log), ("log.runs()", JobRuns))
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and not name.startswith("_")
    ]
    tables = (
        ("Functions", functions),
        ("Methods of a log", methods),
        ("Classes", classes),
        ("Modules", modules),
    )
    return "\n\n".join(
        f"## {title}\n\n{_table(('Name', 'Meaning'), _coded(rows))}" for title, rows in tables
    )


def _summary(value: object) -> str:
    return _plain(inspect.getdoc(value) or "").partition("\n\n")[0]


def _arguments(function: Callable[..., object], skip: int = 0) -> str:
    arguments = list(inspect.signature(function).parameters.values())
    return ", ".join(map(_argument, arguments[skip:]))


def _argument(argument: inspect.Parameter) -> str:
    stars = {argument.VAR_POSITIONAL: "*", argument.VAR_KEYWORD: "**"}.get(argument.kind, "")
    has_default = argument.default is not argument.empty
    return f"{stars}{argument.name}" + (f"={argument.default!r}" if has_default else "")


def pack() -> str:
    """Columns of a pack of history."""
    rows = [(_code(c.name), _code(c.type), c.meaning) for c in history_columns.COLUMNS]
    return _table(("Column", "Type", "Meaning"), rows)


def of_log(name: str) -> Callable[[], str]:
    """Columns of a DataFrame of `aqepilot.read_log`."""

    def table() -> str:
        rows = [(_code(c.name), _code(c.type), c.meaning) for c in log_columns.FRAMES[name]]
        return _table(("Column", "Type", "Meaning"), rows)

    return table


def fates() -> str:
    return _table(("Fate", "Meaning"), _coded(catalog.fates().items()))


def runs() -> str:
    return _table(("Source", "Job; run"), _coded(catalog.run_sources().items()))


def units() -> str:
    return _table(("Unit", "What gets an arm"), _coded(catalog.experiment_units().items()))


def selectors() -> str:
    return _table(("Selector", "Holds for"), _coded(catalog.control_selectors().items()))


def differences() -> str:
    """What the ledger of Spark's own suites says, one row for each reason."""
    entries = ledger.load(ledger.LEDGER.read_text("utf-8"))
    reasons: dict[tuple[str, ...], int] = {}
    for entry in entries:
        key = (", ".join(entry.ways), ", ".join(entry.sparks) or "all", entry.kind, entry.why)
        reasons[key] = reasons.get(key, 0) + 1
    rows = [(ways, sparks, kind, str(n), why) for (ways, sparks, kind, why), n in reasons.items()]
    return _table(("Ways", "Spark", "Kind", "Tests", "Why"), rows)


def permissions() -> str:
    """Who may do what, as the tests try it."""
    rows = tomllib.loads((ROOT / "tests" / "who_may.toml").read_text("utf-8")).values()
    where = ("submitted", "python", "sql", "connect")
    head = ("What", "Submitted", "`use` in the driver's own Python", "SQL, JDBC", "Spark Connect")
    return _table(head, [[r["what"], *("yes" if r[w] else "no" for w in where)] for r in rows])


def jarmatrix() -> str:
    """What came of each jar on each Spark; in brackets what has to come of one."""
    matrix = json.loads(jar_matrix.OUTCOMES.read_text("utf-8"))
    jars = [f"{row['minor']}_{row['scala']}" for row in _spark_rows()]
    lines = []
    for row in _spark_rows():
        if row["role"] == "jvm":
            continue
        for spark in sorted({row["newest"], *filter(None, row["smoke"].split(";"))}):
            cells = matrix.get(spark, {})
            must = {jar: jar_matrix.expected(spark, row["scala"], jar) for jar in jars}
            lines.append([spark, *(cells.get(j) or f"({' or '.join(must[j])})" for j in jars)])
    return _table(("Spark", *(f"Jar {jar}" for jar in jars)), lines)


def hostility() -> str:
    """What hostile policies come to, as the tests try it."""
    minors = [row["minor"] for row in _spark_rows() if row["role"] == "full"]
    parts = []
    for title, cases in (("SQL texts", hostile.SQL), ("Python functions", hostile.PYTHON)):
        rows = []
        for name, case in cases.items():
            outcomes = [case.comes_to(minor) for minor in minors]
            shown = outcomes[:1] if len(set(outcomes)) == 1 else outcomes
            rows.append([name, case.tries, case.point, " / ".join(map(_code, shown))])
        head = ("Policy", "Tries to", "At", f"Comes to (on {' / '.join(minors)} where they differ)")
        parts.append(f"## {title}\n\n{_table(head, rows)}")
    return "\n\n".join(parts)


def faults() -> str:
    """Spark's faults that decisions are kept from."""
    rows = []
    for fault in catalog.spark_faults():
        releases = ", ".join(
            f"{r['from']} up to {r['fixed']}, which mends it"
            if r.get("fixed")
            else f"{r['from']} on"
            for r in fault["releases"]
        )
        shape = fault["shape_meaning"]
        if settings := fault.get("settings"):
            shape += f"; where {' and '.join(map(_code, settings))} are true"
        refused = "; ".join(
            f"{_code(point)}: {', '.join(map(_code, decisions))}"
            for point, decisions in fault["decisions"].items()
        )
        rows.append([fault["jira"], fault["title"], releases, shape, refused, fault["source"]])
    return _table(("Number", "Fault", "Releases", "Shape", "Refused", "Source"), rows)


def problems() -> str:
    return _table(("Problem", "Meaning"), _coded(catalog.problems().items()))


def settings() -> str:
    rows = [
        [_code(s.key), _code(s.type), _code(s.default), s.where, s.meaning]
        for s in catalog.settings()
    ]
    return _table(("Setting", "Takes", "Default", "Where", "Meaning"), rows)


def functions() -> str:
    rows = []
    for entry in functions_listed():
        call, _, meaning = entry["meaning"].partition(" - ")
        rows.append([_code(call), meaning])
    return _table(("Function", "Returns"), rows)


def functions_listed() -> list[dict[str, str]]:
    text = Path(catalog.__file__).with_name("catalog.json").read_text("utf-8")
    functions: list[dict[str, str]] = json.loads(text)["functions"]
    return functions


def recipebook() -> str:
    return _table(
        ("Recipe", "What it is"),
        _coded((n, recipes.summary(n, catalog.spark_minors()[-1].minor)) for n in recipes.names()),
    )


def commands() -> str:
    return "\n\n".join(_command(name, command) for name, command in commands_listed().items())


def commands_listed() -> dict[str, click.Command]:
    """Returns each command by its words; of a group, those in it."""
    commands: dict[str, click.Command] = {}
    for name, command in cli.commands.items():
        if isinstance(command, click.Group):
            commands |= {f"{name} {word}": within for word, within in command.commands.items()}
        else:
            commands[name] = command
    return commands


def _command(name: str, command: click.Command) -> str:
    if name == "demo":
        parser = aqepilot.demo._parser()
        rows = [_argparse_option(action) for action in parser._actions if action.option_strings]
        examples = (parser.epilog or "").removeprefix("Examples: ").split("; ")
        usage, help_text = "[OPTIONS]", parser.description or ""
    else:
        options = [p for p in command.params if isinstance(p, click.Option)]
        arguments = [p for p in command.params if isinstance(p, click.Argument)]
        rows = [_click_option(option) for option in options]
        match = re.search(r"Examples?:\n(.*?)(\n\n|\Z)", command.epilog or "", re.DOTALL)
        examples = [line.strip() for line in (match[1] if match else "").splitlines()]
        named = [a.metavar or (a.name or "").upper() for a in arguments]
        if name == "recipes":
            named = [f"[{word}]" for word in named]
        usage = " ".join([*(["[OPTIONS]"] if options else []), *named])
        help_text = command.help or ""
    parts = [f"## aqepilot {name}", _plain(help_text), _fence(["aqepilot " + f"{name} {usage}"])]
    if rows:
        parts.append(_table(("Option", "Effect"), rows))
    parts.append(_fence(examples))
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))


def _fence(lines: Iterable[str]) -> str:
    return "\n".join(["```sh", *lines, "```"])


def _click_option(option: click.Option) -> list[str]:
    word = option.metavar or ""
    if isinstance(option.type, click.Choice):
        word = "|".join(map(str, option.type.choices))
    elif isinstance(option.type, click.Path):
        word = "FILE"
    default = f" Default: {option.default}." if option.show_default else ""
    words = ", ".join(map(_code, (*option.opts[:-1], f"{option.opts[-1]} {word}".strip())))
    return [words, f"{option.help or ''}{default}"]


def _argparse_option(action: argparse.Action) -> list[str]:
    word = "" if action.nargs == 0 else action.metavar or (action.dest or "").upper()
    return [_code(f"{action.option_strings[-1]} {word}".strip()), action.help or ""]


def columns() -> str:
    rows = [[_code(column.name), column.meaning] for column in catalog.decision_columns()]
    return _table(("Column", "Meaning"), rows)


def events() -> str:
    parts = []
    for name, about, fields in events_listed():
        rows = [[_code(field), kind, meaning] for field, kind, meaning in fields]
        parts.append(f"### {name}\n\n{about}\n\n{_table(('Field', 'Type', 'Meaning'), rows)}")
    return "\n\n".join(parts)


def events_listed() -> list[tuple[str, str, list[tuple[str, str, str]]]]:
    """Every event of the record: name, meaning, and field, type and meaning of each field."""
    source = EVENTS.read_text("utf-8")
    events = []
    pattern = (
        r"/\*\*((?:(?!\*/).)*)\*/\s*(?:@\S+\s+)?final case class (AqePilot\w+)"
        r"\((.*?)\n?\s*\)\s*(?:extends|\n|\Z)"
    )
    for doc, name, body in re.findall(pattern, source, re.DOTALL):
        text = re.sub(r"^\s*\* ?", "", doc, flags=re.MULTILINE)
        about, *params = re.split(r"@param\s+", text)
        meanings = {p.split()[0]: " ".join(p.split()[1:]) for p in params}
        fields = [
            (field, _event_type(kind), meanings.get(field) or _meaning(name, field))
            for field, kind in re.findall(r"(\w+): ((?:Option|Seq)\[\w+\]|\w+)", body)
        ]
        events.append((name, " ".join(about.split()), fields))
    return events


def _event_type(kind: str) -> str:
    inner = re.fullmatch(r"(Option|Seq)\[(\w+)\]", kind)
    if inner is None:
        return kind.lower() if not kind.startswith("AqePilot") else kind
    return (
        f"{_event_type(inner[2])}, may be missing"
        if inner[1] == "Option"
        else f"list of {inner[2]}"
    )


def _meaning(event: str, field: str) -> str:
    """What is said below, else what the column of the same name means."""
    column = re.sub(r"(?=[A-Z])", "_", field).lower()
    own = FIELD_MEANINGS.get(f"{event}.{field}") or FIELD_MEANINGS.get(field)
    return own or {c.name: c.meaning for c in catalog.decision_columns()}.get(column, "")


# Fields of events of which neither the Scala code nor a column says more than the name.
FIELD_MEANINGS = {
    "schemaVersion": "2",
    "time": "milliseconds since 1970",
    "sessionId": "the Spark session",
    "executionId": "Spark's id of the query's execution",
    "AqePilotPolicyLoaded.policy": "the policy's name",
    "AqePilotPolicyLoaded.mode": "`off`, `shadow` or `enforce`",
    "text": "the SQL text",
    "when": "the SQL text of its `when`",
    "user": "who runs the application",
    "AqePilotPolicyLoaded.error": "what is wrong with the text",
    "succeeded": "whether the query ended without an error",
    "AqePilotQueryClosed.error": "Spark's message",
    "wallMillis": "from the query's start to its end, milliseconds",
    "taskMillis": "run time of tasks, milliseconds",
    "cpuMillis": "CPU time of tasks, milliseconds",
    "inputBytes": "read from sources",
    "shuffleReadBytes": "read from shuffles",
    "shuffleWriteBytes": "written to shuffles",
    "memorySpillBytes": "spilled, as it was in memory",
    "diskSpillBytes": "spilled, as it was on disk",
    "failedTasks": "task attempts that failed; killed ones are not counted",
}


def autopilotkeys() -> str:
    """The keys of an autopilot's file, out of the docstring of its definition."""
    listed = re.search(r"Args:\n(.*?)\n\n", inspect.getdoc(Autopilot) or "", re.DOTALL)
    text = f"{listed[1]}\n" if listed else ""
    entries = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", text, re.DOTALL | re.MULTILINE)
    rows = []
    for name, meaning in entries:
        field = Autopilot.model_fields[name]
        default = "needed" if field.is_required() else _code(json.dumps(field.default))
        rows.append([_code(name), default, meaning.replace("`", "")])
    return _table(["Key", "Default", "Meaning"], rows)


def autopilotreasons() -> str:
    return _table(["Reason", "Meaning"], _coded(STEP_REASONS.items()))


BLOCKS: dict[str, Callable[[], str]] = {
    block.__name__: block
    for block in (
        *(sparks, reasons, fates, problems, settings, functions),
        *(recipebook, commands, columns, events, differences, permissions),
        *(hostility, jarmatrix, runs, selectors, units, commonfacts, history),
        *(faults, remedies, api, pack, autopilotkeys, autopilotreasons),
    )
} | {name: of_log(name) for name in log_columns.FRAMES if name != "decisions"}
POINT_BLOCKS: dict[str, Callable[[catalog.Point], str]] = {"answers": answers, "facts": facts}

if __name__ == "__main__":
    for page in pages():
        page.write_text(refreshed(page.read_text("utf-8")), "utf-8")

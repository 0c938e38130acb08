"""The documentation: up to date, complete, its links, commands and policies good."""

import ast
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from itertools import chain

import click
import pytest

import aqepilot
import tiers
from aqepilot import catalog, recipes
from aqepilot.autopilot.definition import Definition as Autopilot
from aqepilot.cli import main as cli
from aqepilot.decision import COLUMNS
from aqepilot.experiment.definition import Definition
from aqepilot.function import is_imported
from places import ROOT

pytestmark = tiers.on("4.3")

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
TEXT = {page: page.read_text("utf-8") for page in PAGES}
EVERYTHING = "\n".join(TEXT.values())
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def generator():
    spec = importlib.util.spec_from_file_location("docs_generator", ROOT / "tools" / "docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DOCS = generator()


def fences(kind, text=EVERYTHING):
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def command_lines():
    """Words of each command line in a shell block, without its comment; `$(...)` apart."""
    for line in chain.from_iterable(block.splitlines() for block in fences("sh")):
        inner = re.findall(r"\$\((.*?)\)", line)
        plain = re.sub(r'^eval "(.*)"$', r"\1", re.sub(r"\$\(.*?\)", "", line))
        for command in (plain, *inner):
            words = shlex.split(command, comments=True)
            if words:
                yield words


@every_page
def test_a_page_is_up_to_date_with_the_sources(page):
    assert DOCS.refreshed(TEXT[page]) == TEXT[page], "run `make docs`"


def test_every_generated_part_stands_on_one_page():
    blocks = re.findall(r"<!-- generated: (\w+(?: \w+)?) -->", EVERYTHING)
    of_points = [
        f"{block} {point}" for block in DOCS.POINT_BLOCKS for point in catalog.point_names()
    ]
    assert sorted(blocks) == sorted([*DOCS.BLOCKS, *of_points])


def test_every_decision_point_has_a_page():
    for point in catalog.point_names():
        assert (
            f"<!-- generated: facts {point} -->"
            in TEXT[ROOT / "docs/reference/points" / f"{point}.md"]
        )


def test_every_reason_and_problem_has_a_remedy_and_no_other_code():
    reasons = ROOT / "jvm/src/main/resources/org/apache/spark/sql/aqepilot/reasons"
    known = json.loads((reasons / "remedies.json").read_text("utf-8"))
    assert list(known["reasons"]) == list(catalog.reasons())
    assert list(known["problems"]) == list(catalog.problems())


def names():
    yield from (s.key for s in catalog.settings())
    for point in catalog.points():
        yield from (w.word for w in point.words)
        yield from (f.path for f in (*point.fields, *point.facts))
    yield from catalog.reasons()
    yield from catalog.problems()
    yield from catalog.fates()
    yield from (entry["name"] for entry in DOCS.functions_listed())
    yield from recipes.names()
    yield from COLUMNS
    yield from (p.name for p in catalog.points())
    yield from (f"aqepilot {name}" for name in DOCS.commands_listed())
    for name, _, fields in DOCS.events_listed():
        yield name
        yield from (field for field, _, _ in fields)


def test_every_name_is_documented():
    missing = [name for name in names() if not re.search(rf"\b{re.escape(name)}(?!\w)", EVERYTHING)]
    assert not missing


def test_every_option_of_a_command_is_documented():
    page = TEXT[ROOT / "docs/reference/command-line.md"]
    sections = dict(re.findall(r"^## aqepilot ([\w ]+)\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.M))
    for name, command in DOCS.commands_listed().items():
        for option in options_of(name, command):
            assert f"`{option}" in sections[name], f"aqepilot {name} {option}"


def test_the_python_functions_are_documented():
    functions = {name for name in aqepilot.__all__ if name[0].islower()} | {"Policy", "Decision"}
    assert not [name for name in functions if f"aqepilot.{name}" not in EVERYTHING]


def docstrings():
    for file in sorted((ROOT / "python" / "aqepilot").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                yield ast.get_docstring(node) or ""


def missing_names(text):
    """Dotted Python names in a text that a fresh `import aqepilot` does not reach."""
    names = sorted(set(re.findall(r"(?<![\w./-])aqepilot(?:\.[A-Za-z_]\w*)+", text)))
    script = """
import sys, aqepilot
for name in sys.argv[1:]:
    value = aqepilot
    try:
        for part in name.split(".")[1:]:
            value = getattr(value, part)
    except AttributeError:
        print(name)
"""
    command = [sys.executable, "-c", script, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_every_documented_python_name_is_there_after_the_import():
    assert missing_names("\n".join([EVERYTHING, *docstrings()])) == []


def test_a_name_that_is_not_there_is_noticed():
    text = "Call `aqepilot.log.tables.collect`, `spark.aqepilot.mode` or `aqepilot.Log.costs`."
    assert missing_names(text) == ["aqepilot.log.tables.collect"]


def test_the_readme_fits_two_screens():
    assert len(TEXT[ROOT / "README.md"].splitlines()) <= 100


def test_the_site_s_menu_has_every_page():
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = set(re.findall(r"[: ] ?([\w./-]+\.md)$", menu, re.MULTILINE))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    of_the_root = {path.name for path in ROOT.glob("*.md")} | {"index.md"}
    assert named - of_the_root == pages


def test_every_event_has_fields_with_a_meaning():
    listed = DOCS.events_listed()
    assert [name for name, _, _ in listed] == [
        "AqePilotPolicyLoaded",
        "AqePilotControl",
        "AqePilotExperiment",
        "AqePilotDecision",
        "AqePilotFate",
        "AqePilotSubPlan",
        "AqePilotQueryClosed",
    ]
    assert not [(name, f) for name, _, fields in listed for f, _, meaning in fields if not meaning]


@every_page
def test_no_link_is_dead(page):
    for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", TEXT[page], flags=re.S)):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text("utf-8"), re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}, target


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def options_of(name, command):
    if name == "demo":
        actions = aqepilot_demo_parser()._actions
        return {option for action in actions for option in action.option_strings if "--" in option}
    return {o for p in command.params if isinstance(p, click.Option) for o in p.opts}


def aqepilot_demo_parser():
    from aqepilot.demo import _parser

    return _parser()


OTHER_PROGRAMS = {
    "bench": "bench/options.py",
    "mutants": "tools/mutants.py",
    "native-engines": "tests/native_engines/__main__.py",
    "parity": "tests/support/parity.py",
    "small-heap": "tests/small_heap/__main__.py",
    "soak": "tests/soak/__main__.py",
    "spark-suites": "tests/spark_suites/__main__.py",
    "table-formats": "tests/table_formats/__main__.py",
    "yarn": "tests/yarn/__main__.py",
}


def is_understood(program, words):
    """Are these options of the program, and words that it knows?"""
    source = (ROOT / OTHER_PROGRAMS[program]).read_text("utf-8")
    if program == "bench":
        for names in ("cases.py", "history.py", "parts.py", "tuning.py"):
            source += (ROOT / "bench" / names).read_text("utf-8")
    known = set(re.findall(r"[\"']([\w-]+)[\"']", source))
    return {word for word in words if word.isalpha() or word.startswith("--")} <= known


def test_command_lines_name_commands_options_and_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    seen = set()
    for program, *words in command_lines():
        seen.add(program)
        if program == "make":
            for word in words:
                assert word in targets or re.match(
                    r"(ARGS|N|SEED|SPARK|PYTHON|SUITE|TESTS|HISTORY)=", word
                ), word
                arguments = shlex.split(word.removeprefix("ARGS="))
                if word.startswith("ARGS=") and words[0] in OTHER_PROGRAMS:
                    assert is_understood(words[0], arguments), words
                elif word.startswith("TESTS="):
                    assert (ROOT / word.removeprefix("TESTS=")).is_file(), word
                elif word.startswith("ARGS=") and words[0] != "pytest":
                    aqepilot_demo_parser().parse_args(arguments)
        elif program == "aqepilot":
            name, *rest = words
            if isinstance(cli.commands[name], click.Group):
                name = f"{name} {rest.pop(0)}"
            own = rest[: rest.index("--")] if "--" in rest else rest
            used = {word.split("=")[0] for word in own if word.startswith("--")}
            assert used <= options_of(name, DOCS.commands_listed()[name]), words
        elif program == "python":
            assert words[0] == "-m", words
            assert (ROOT / words[1].replace(".", "/")).with_suffix(".py").is_file(), words
        else:
            known = (
                "pip",
                "spark-submit",
                "start-thriftserver.sh",
                "start-connect-server.sh",
                "start-history-server.sh",
            )
            of_shell = ("echo", "export", "mkdir")
            assert program.rpartition("/")[2] in (*known, *of_shell), program
    assert {"make", "aqepilot", "spark-submit"} <= seen


def test_commands_in_sentences_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    targets_named = set(re.findall(r"`make ([a-z-]+)", EVERYTHING))
    assert targets_named <= targets
    assert set(re.findall(r"`aqepilot ([a-z]+)", EVERYTHING)) <= set(cli.commands)


def policy_texts():
    for block in fences("toml"):
        if block.startswith("[experiment]"):
            Definition.from_toml(block)
            continue
        if block.startswith("[autopilot]"):
            Autopilot.from_toml(block)
            continue
        policy = aqepilot.Policy.from_toml(block)
        yield from (pair for pair in policy.texts().items() if not is_imported(pair[1]))
    for block in fences("sql"):
        if block.startswith("CASE"):
            yield "dynamic_join_selection", block


def test_the_policies_shown_bind(spark):
    texts = list(policy_texts())
    assert len(texts) >= 6
    for point, text in texts:
        rows = spark.sql("SELECT * FROM aqepilot_check(:p, :t)", args={"p": point, "t": text})
        assert rows.collect() == [], text


def test_the_sql_shown_runs(spark):
    statements = [
        statement
        for block in fences("sql")
        if not block.startswith("CASE")
        for statement in re.split(r";\s*\n", block)
        if statement.strip()
    ]
    results = {text: spark.sql(text).collect() for text in statements}
    (rehearsed,) = [rows for text, rows in results.items() if "aqepilot_decide" in text]
    assert [tuple(row) for row in rehearsed] == [("SHUFFLE_HASH", "SHUFFLE_HASH", "APPLIED", None)]
    (checked,) = [rows for text, rows in results.items() if "aqepilot_check" in text]
    assert checked[0].suggestions == ["side.max_bytes"]


def test_nothing_is_read_from_the_network_or_one_machine():
    shown = [*TEXT.values(), *(p.read_text("utf-8") for p in (ROOT / "docs").glob("*.svg"))]
    for text in shown:
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
        assert not re.search(r"(?<![\w.])/(home|root|work|tmp|Users)/", text)

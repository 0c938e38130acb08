"""What a Spark lacks of what the jar refers to, and the decision points that this costs."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pyspark
import pytest
from click.testing import CliRunner

import tiers
from aqepilot import AqePilotError, catalog
from aqepilot.cli import main
from aqepilot.submit import jars
from aqepilot.submit.doctor import links
from aqepilot.submit.doctor.class_files import Classes, ClassFile
from aqepilot.submit.doctor.code_paths import CodePaths, points_named

HOME = Path(pyspark.__file__).parent
JAR = jars.find(pyspark.__version__)
EXTENSIONS = "org/apache/spark/sql/SparkSessionExtensions"
FOLDER = jars.FOLDER


class Lacking(Classes):
    """The classes of this Spark without some: a class' name, or a class and a method."""

    gone: tuple[tuple[str, str | None], ...] = ()

    def get(self, name: str) -> ClassFile | None:
        class_file = super().get(name)
        methods = {method for owner, method in self.gone if owner == name}
        if class_file is None or None in methods:
            return None
        class_file = copy.copy(class_file)
        class_file.methods = {
            key: m for key, m in class_file.methods.items() if key[0] not in methods
        }
        return class_file


HOOK = (EXTENSIONS, "injectRuntimeOptimizerRule")
LOOKED_FOR = ("org/apache/spark/sql/execution/adaptive/AQEUtils", "getRequiredDistribution")
RULE = "org/apache/spark/sql/execution/adaptive/OptimizeSkewInRebalancePartitions"
CAUGHT = (EXTENSIONS, "injectTableFunction")
OF_TEXTS = "org/apache/spark/sql/catalyst/expressions/StringSplit"


@pytest.fixture(scope="module")
def spark() -> Lacking:
    paths = sorted((HOME / "jars").glob("*.jar"), key=lambda p: not p.name.startswith("spark-"))
    return Lacking(paths)


@pytest.fixture(scope="module")
def ours() -> list[ClassFile]:
    return Classes([JAR]).all()


@pytest.fixture(scope="module")
def missing(ours: list[ClassFile], spark: Lacking) -> list[links.Missing]:
    """What is missing of the above."""
    spark.gone = (
        *(HOOK, CAUGHT, LOOKED_FOR, (f"{LOOKED_FOR[0]}$", LOOKED_FOR[1])),
        *((name, None) for name in (RULE, f"{RULE}$", OF_TEXTS)),
    )
    lacking = links.Links(CodePaths(ours, spark)).missing()
    spark.gone = ()
    return lacking


def lacks(missing: list[links.Missing], owner: str, name: str = "") -> links.Missing:
    (one,) = [m for m in missing if (m.owner, m.name) == (owner.replace("/", "."), name)]
    return one


@pytest.fixture(scope="module")
def checked() -> links.Checked:
    return links.check(HOME)


def test_this_spark_lacks_nothing_that_its_jar_refers_to(checked: links.Checked) -> None:
    assert checked.missing == []
    assert checked.looked_for > 2000
    assert checked.points == tuple(sorted(catalog.point_names()))
    assert checked.jar == JAR


def test_a_missing_hook_costs_the_points_that_are_registered_with_it(
    missing: list[links.Missing],
) -> None:
    lacking = lacks(missing, *HOOK)
    assert str(lacking) == f"{lacking.owner}.injectRuntimeOptimizerRule(scala.Function1)"
    assert lacking.points == ("dynamic_join_selection",)
    assert (lacking.kind, lacking.effect) == ("method", "off")
    assert lacking.used_by == ("io.aqepilot.AqePilotExtension",)


def test_what_a_point_looks_for_costs_it_also_where_no_code_comes_to_it(
    missing: list[links.Missing],
) -> None:
    """The driver looks for a method by its name, before any rule of the point runs."""
    lacking = lacks(missing, f"{LOOKED_FOR[0]}$", LOOKED_FOR[1])
    assert (lacking.points, lacking.effect) == (("shuffle_partitions",), "off")


def test_a_missing_class_costs_what_comes_to_it(missing: list[links.Missing]) -> None:
    lacking = lacks(missing, f"{RULE}$")
    assert (lacking.kind, lacking.points) == ("class", ("partition_coalescing",))


def test_what_is_caught_for_a_part_alone_switches_no_point_off(
    missing: list[links.Missing],
) -> None:
    lacking = lacks(missing, *CAUGHT)
    assert (lacking.points, lacking.effect) == ((), "part")


def test_what_only_texts_of_policies_need_costs_those(missing: list[links.Missing]) -> None:
    lacking = lacks(missing, OF_TEXTS)
    assert (lacking.points, lacking.effect) == ((), "policies")


def test_what_costs_most_comes_first(missing: list[links.Missing]) -> None:
    effects = [lacking.effect for lacking in missing]
    assert effects == sorted(effects, key=["off", "policies", "part", "unused"].index)


def test_a_method_that_spark_calls_and_ours_lacks_is_found(
    ours: list[ClassFile], spark: Lacking
) -> None:
    changed = []
    for each in ours:
        if each.name.endswith("/PolicyCostEvaluator"):
            each = copy.copy(each)
            each.methods = {k: m for k, m in each.methods.items() if k[0] != "evaluateCost"}
        changed.append(each)
    every = links.Links(CodePaths(changed, spark)).missing()
    abstract = [lacking for lacking in every if lacking.kind == "abstract"]
    assert [(one.name, one.points) for one in abstract] == [("evaluateCost", ("cost_evaluation",))]


def test_the_jar_of_another_minor_has_points_off(monkeypatch: pytest.MonkeyPatch) -> None:
    minor = ".".join(pyspark.__version__.split(".")[:2])
    other = "3.5" if minor == "4.3" else "4.3"
    (jar, *_) = sorted(FOLDER.glob(f"*-{other}_*.jar"))
    monkeypatch.setattr(jars, "find", lambda *_: jar)
    checked = links.check(HOME)
    of_point = [one for one in checked.missing if "dynamic_join_selection" in one.points]
    rule = "DynamicJoinSelection" if other == "3.5" else "DemoteBroadcastHashJoin"
    assert any(rule in one.owner for one in of_point)


@tiers.ON_ONE
@pytest.mark.parametrize("jar", sorted(FOLDER.glob("*.jar")), ids=lambda jar: jar.name)
def test_all_code_of_a_jar_is_understood(jar: Path) -> None:
    """Each point is registered, and says what it needs: else nothing would be found missing."""
    paths = CodePaths(Classes([jar]).all(), Classes([]))
    assert paths.points == set(catalog.point_names())
    checked = links.Links(paths)
    for each in paths.ours.values():
        if points_named(each.name):
            assert len(checked._needs(each)) >= 2, each.name
    roots = [(points, methods) for points, methods in paths._roots() if len(points) == 1]
    least = min(len(methods) for _, methods in roots)
    assert least >= 2  # how a point is registered, and its rule
    caught = {
        step.effect
        for c in paths.ours.values()
        for m in c.methods.values()
        for step in paths.steps(m)
    }
    assert caught == {None, "part", "policies", "unused"}


def test_the_command_tells_it_for_programs(
    checked: links.Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "check", lambda *_: checked)
    done = CliRunner().invoke(main, ["doctor", "--json", "--spark-home", str(HOME)])
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["is_well"], answer["missing"]) == (0, True, [])
    assert {f["code"] for f in answer["findings"]} == {"JAR_FITS", "POINT_LIVE"}


def test_a_folder_without_a_spark_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["doctor", "--spark-home", str(tmp_path)])
    assert done.exit_code == 1
    assert "pyspark.__path__" in done.stderr


def test_the_command_says_what_is_missing_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = links.Missing("method", "a.B", "c", "(I)V", ("skew_join",), "off", ("io.aqepilot.X",))
    part = links.Missing("class", "a.C", "", "", (), "part", ("io.aqepilot.Y",))
    checked = links.Checked(
        jars.Spark("3.5.6-amzn-1", "2.12"),
        JAR,
        3000,
        [lacking, part],
        ("join_reorder", "skew_join"),
    )
    monkeypatch.setattr(links, "check", lambda *_: checked)
    done = CliRunner().invoke(main, ["doctor", "--json", "--spark-home", "x"])
    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["is_well"]) == (1, False)
    assert answer["missing"][0]["points"] == ["skew_join"]
    findings = [(f["level"], f["code"]) for f in answer["findings"]]
    assert findings == [
        ("ok", "JAR_FITS"),
        ("error", "REFERENCE_MISSING"),
        ("warning", "REFERENCE_MISSING"),
        ("ok", "POINT_LIVE"),
        ("error", "POINT_OFF"),
    ]
    message = answer["findings"][1]["message"]
    assert "Spark 3.5.6-amzn-1 lacks the method a.B.c(int)." in message
    assert "That switches off: skew_join. Used by: io.aqepilot.X." in message


def test_words_for_spark_submit_do_not_go_with_it() -> None:
    done = CliRunner().invoke(main, ["doctor", "--spark-home", "x", "--", "--master", "yarn"])
    assert done.exit_code == 2


@pytest.mark.parametrize("name", ["spark-core_2.12-3.5.6.jar", "spark-sql_2.12-3.5.6.jar"])
def test_jars_that_cannot_be_read_are_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / name).write_bytes(b"no jar")
    with pytest.raises(AqePilotError, match=r"cannot be read|is no Spark"):
        links.check(tmp_path)

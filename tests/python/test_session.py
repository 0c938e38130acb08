"""What configure and use set, and what they leave alone; without a Spark."""

import pytest

from aqepilot import AqePilotError, NotLiveError, Policy, PolicyError, session
from aqepilot.conf import EXTENSION

JAR = "/j/aqepilot-spark-4.3_2.13-0.1.0.jar"
TEXT = "spark.aqepilot.policy.{}.dynamic_join_selection"


def policy(name, text="null", **extras):
    return Policy(name=name, dynamic_join_selection=text, **extras)


class Builder:
    def __init__(self, **options):
        self._options = {key.replace("__", "."): value for key, value in options.items()}

    def config(self, key, value):
        self._options[key] = value
        return self


class Conf(dict):
    def set(self, key, value):
        self[key] = value

    def unset(self, key):
        self.pop(key, None)


class Spark:
    """The settings of a session, and the answers of the extension."""

    def __init__(self, problems=(), points=("live", None), **submitted):
        self.conf = Conf({key.replace("__", "."): value for key, value in submitted.items()})
        self.checked = []
        self._problems, self._points = list(problems), points

    def sql(self, sql, args=None):
        if "aqepilot_check" in sql:
            self.checked.append((args["point"], args["text"]))
            return Rows([row for row in self._problems if row["text"] == args["text"]])
        return Rows([("point", "dynamic_join_selection", *self._points)])


class Rows(list):
    def collect(self):
        return self


@pytest.fixture
def no_jvm(monkeypatch, tmp_path):
    for name in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setattr(session.gateway, "running_conf", lambda: None)
    monkeypatch.setattr(session.gateway, "is_running", lambda: False)
    return tmp_path


def test_configure_adds_to_what_the_builder_has(no_jvm):
    builder = Builder(spark__jars="/a.jar", spark__sql__extensions="org.a.One", spark__x="1")
    assert session.configure(builder, policy("p"), jar=JAR) is builder
    assert builder._options == {
        "spark.x": "1",
        "spark.jars": f"/a.jar,{JAR}",
        "spark.sql.extensions": f"org.a.One,{EXTENSION}",
        "spark.aqepilot.policies": "p",
        TEXT.format("p"): "null",
    }


def test_configure_adds_to_spark_defaults_and_submit_args(no_jvm, monkeypatch):
    (no_jvm / "spark-defaults.conf").write_text(
        "spark.sql.extensions org.a.One\nspark.aqepilot.policies platform\n"
    )
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.jars=/a.jar pyspark-shell")
    options = session.configure(Builder(), policy("p"), jar=JAR)._options
    assert options["spark.sql.extensions"] == f"org.a.One,{EXTENSION}"
    assert options["spark.jars"] == f"/a.jar,{JAR}"
    assert options["spark.aqepilot.policies"] == "p,platform"


def test_policies_of_several_calls_are_asked_in_their_order_before_the_submitted(no_jvm):
    (no_jvm / "spark-defaults.conf").write_text("spark.aqepilot.policies platform\n")
    builder = Builder()
    for name in ("a", "b", "a"):
        session.configure(builder, policy(name), jar=JAR)
    assert builder._options["spark.aqepilot.policies"] == "a,b,platform"
    assert builder._options["spark.jars"] == JAR


def test_configure_refuses_jars_that_would_be_overruled(no_jvm, monkeypatch):
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars /a.jar pyspark-shell")
    with pytest.raises(AqePilotError, match=f"add {JAR} to it"):
        session.configure(Builder(), jar=JAR)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars /a.jar,{JAR} pyspark-shell")
    session.configure(Builder(), jar=JAR)


def test_a_connect_server_gets_policies_only(no_jvm):
    builder = Builder(spark__remote="sc://host")
    options = session.configure(builder, policy("p"))._options
    assert set(options) == {"spark.remote", "spark.aqepilot.policies", TEXT.format("p")}


def test_configure_says_that_a_spark_runs_already(no_jvm, monkeypatch):
    monkeypatch.setattr(session.gateway, "running_conf", lambda: {"spark.app.name": "x"})
    with pytest.raises(NotLiveError, match=r"runs in this Python already.*spark\.stop"):
        session.configure(Builder(), policy("p"), jar=JAR)


def test_configure_on_a_spark_with_aqepilot_sets_policies_only(no_jvm, monkeypatch):
    monkeypatch.setattr(
        session.gateway, "running_conf", lambda: {"spark.sql.extensions": EXTENSION}
    )
    options = session.configure(Builder(), policy("p"))._options
    assert set(options) == {"spark.aqepilot.policies", TEXT.format("p")}


def test_configure_with_a_bad_policy_changes_nothing(no_jvm):
    builder = Builder()
    with pytest.raises(PolicyError):
        session.configure(builder, {"name": "p"}, jar=JAR)
    assert builder._options == {}


def test_use_goes_before_the_submitted_policies_and_back_again():
    spark = Spark(**{"spark.aqepilot.policies": "platform", TEXT.format("platform"): "'X'"})
    submitted = dict(spark.conf)
    session.use(spark, policy("a", when="true"), policy("b"))
    assert spark.conf["spark.aqepilot.policies"] == "a,b,platform"
    assert spark.conf["spark.aqepilot.policy.a.when"] == "true"
    session.use(spark, policy("c"))
    assert spark.conf == submitted | {
        "spark.aqepilot.policies": "c,platform",
        TEXT.format("c"): "null",
    }
    session.use(spark)
    assert spark.conf == submitted


def test_use_of_a_submitted_policys_name_replaces_all_of_it_for_a_while():
    submitted = {
        "spark.aqepilot.policies": "platform,sales",
        TEXT.format("sales"): "'X'",
        "spark.aqepilot.policy.sales.when": "true",
    }
    spark = Spark(**submitted)
    session.use(spark, policy("sales", "'Y'", mode="shadow"))
    session.use(spark, policy("sales", "'Z'"))
    assert spark.conf == {
        "spark.aqepilot.policies": "sales,platform",
        TEXT.format("sales"): "'Z'",
    }
    session.use(spark)
    assert spark.conf == submitted


def test_use_checks_every_text_and_sets_nothing_when_one_is_bad():
    rows = [
        {"text": t, "code": "E", "message": m, "line": 2, "column": 5, "suggestions": s}
        for t, m, s in (("bad", "no fact 'x'.", ["side.y"]), ("worse", "no.", None))
    ]
    spark = Spark(rows)
    with pytest.raises(PolicyError) as caught:
        session.use(spark, policy("a", "bad", when="worse"), policy("b"))
    assert str(caught.value).splitlines() == [
        "a.dynamic_join_selection:2:5: no fact 'x'. Did you mean side.y?",
        "a.when:2:5: no.",
    ]
    assert spark.conf == {}
    assert ("when", "worse") in spark.checked


def test_use_at_a_point_that_is_off_says_why():
    spark = Spark(points=("off", "this Spark lacks JoinHint"))
    with pytest.raises(NotLiveError, match="lacks JoinHint"):
        session.use(spark, policy("a"))
    assert spark.conf == {}


def test_other_errors_of_spark_come_through():
    class Broken(Spark):
        def sql(self, sql, args=None):
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        session.status(Broken())

"""What configure and use set, and what they leave alone; without a Spark."""

import pickle
import threading

import pytest

import aqepilot
from aqepilot import AqePilotError, NotLiveError, Policy, PolicyError, session, session_policies
from aqepilot.submit.conf import EXTENSION, TOKEN_KEY

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


class Gateway:
    """Takes the functions that the driver is given."""

    def __init__(self):
        self.pickled, self.allowed = {}, []

    def register(self, name, code):
        text = f"python:pickled:{name}:{len(code)}"
        self.pickled[text] = code
        return text

    def allow(self, text):
        self.allowed.append(text)

    token = "00ff"

    def session(self, spark):
        return self

    def next_session(self):
        return self

    def sql_of(self, spark, column):
        raise AssertionError("no Column is given")

    def running_conf(self):
        return {"spark.sql.extensions": EXTENSION}


@pytest.fixture
def driver(monkeypatch):
    gateway = Gateway()
    for module in (session, session_policies):
        monkeypatch.setattr(module, "gateway", gateway)
    return gateway


def test_keywords_make_one_more_policy_asked_after_the_others(driver):
    spark = Spark()
    session.use(spark, policy("a"), dynamic_join_selection="'X'", mode="shadow", when="true")
    assert spark.conf == {
        "spark.aqepilot.policies": "a,session",
        TEXT.format("a"): "null",
        TEXT.format("session"): "'X'",
        "spark.aqepilot.policy.session.mode": "shadow",
        "spark.aqepilot.policy.session.when": "true",
    }
    session.use(spark, name="trial", dynamic_join_selection="'X'")
    assert spark.conf["spark.aqepilot.policies"] == "trial"


def test_a_function_goes_to_the_driver_and_its_text_is_checked_and_set(driver):
    spark = Spark()
    least = 7
    session.use(spark, dynamic_join_selection=lambda facts: least)
    ((text, code),) = driver.pickled.items()
    assert pickle.loads(code)(None) == 7
    assert spark.conf[TEXT.format("session")] == text
    assert spark.conf[TOKEN_KEY] == "00ff"
    assert ("dynamic_join_selection", text) in spark.checked
    assert driver.allowed == []


def test_a_mapping_may_hold_a_function_too(driver):
    spark = Spark()
    policy = {"name": "trial", "mode": "shadow", "dynamic_join_selection": lambda facts: None}
    session.use(spark, policy)
    assert spark.conf[TEXT.format("trial")] in driver.pickled
    assert callable(policy["dynamic_join_selection"])


def test_a_text_that_names_a_function_is_allowed_before_it_is_checked(driver):
    text = "python:sales.policies:choose"
    row = {"text": text, "code": "E", "message": "no.", "line": 1, "column": 1, "suggestions": None}
    spark = Spark([row])
    with pytest.raises(PolicyError):
        session.use(spark, policy("a", text), policy("b"))
    assert driver.allowed == [text]
    assert spark.conf == {}


def test_configure_on_a_spark_that_runs_allows_functions_too(no_jvm, driver):
    builder = session.configure(Builder(), policy("a", "python:sales.policies:choose"))
    assert driver.allowed == ["python:sales.policies:choose"]
    assert builder._options[TOKEN_KEY] == "00ff"


def test_all_that_is_wrong_with_functions_and_policies_comes_at_once(driver):
    spark = Spark()
    lock = threading.Lock()
    with pytest.raises(PolicyError) as caught:
        session.use(
            spark,
            {"name": "b", "dynamic_join_selection": lambda facts: lock},
            {"name": "c", "skew_join": aqepilot.policy("join_reorder")(lambda facts: None)},
            dynamic_join_selection=lambda: None,
            skew_joins=lambda facts: None,
        )
    assert {(p.code, p.where) for p in caught.value.problems} == {
        ("FUNCTION_NOT_PICKLABLE", "b.dynamic_join_selection"),
        ("FUNCTION_FOR_ANOTHER_POINT", "c.skew_join"),
        ("FUNCTION_INVALID", "session.dynamic_join_selection"),
        ("POLICY_KEY_UNKNOWN", None),
    }
    assert spark.conf == {}
    assert driver.pickled == {}


def test_what_is_neither_text_nor_function_is_refused(driver):
    with pytest.raises(PolicyError, match="dynamic_join_selection has to be text, not int"):
        session.use(Spark(), dynamic_join_selection=7)


def test_configure_says_where_a_function_goes(no_jvm):
    with pytest.raises(PolicyError, match=r"aqepilot\.use\(spark, skew_join=\.\.\.\)"):
        session.configure(Builder(), {"name": "a", "skew_join": lambda facts: None}, jar=JAR)


def test_a_spark_connect_client_brings_no_function_and_no_column(driver, monkeypatch):
    class Column:
        __module__ = "pyspark.sql.connect.column"

    monkeypatch.setattr(Spark, "__module__", "pyspark.sql.connect.session")
    spark = Spark()
    with pytest.raises(PolicyError) as caught:
        session.use(spark, dynamic_join_selection=lambda facts: None, skew_join=Column())
    assert {(p.code, p.where) for p in caught.value.problems} == {
        ("PYTHON_NOT_ALLOWED", "session.dynamic_join_selection"),
        ("COLUMN_NOT_SQL", "session.skew_join"),
    }
    assert spark.conf == {}


def test_a_spark_connect_client_allows_nothing_by_itself(driver, monkeypatch):
    monkeypatch.setattr(Spark, "__module__", "pyspark.sql.connect.session")
    session.use(Spark(), policy("a", "python:sales.policies:choose"))
    assert driver.allowed == []


def test_other_errors_of_spark_come_through():
    class Broken(Spark):
        def sql(self, sql, args=None):
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        session.status(Broken())

"""Python functions in policy files: asked on made facts, failures told with their places."""

import json
import re
from contextlib import contextmanager

import pytest

import aqepilot
from aqepilot import gateway
from aqepilot.submit import check

NAMED = '''name = "sales"
when = "true"
skew_join = """
  python:sales.policies:split"""
dynamic_join_selection = "null"
'''


class Conf(dict):
    def set(self, key, value):
        self[key] = value


class Spark:
    """Answers as the extension does; the function raises on facts without left.max_bytes."""

    def __init__(self, refuses=()):
        self.refuses, self.asked = refuses, []
        self.conf = Conf()

    def sql(self, sql, args=None):
        return Rows(self.rows(sql, args or {}))

    def rows(self, sql, args):
        if "aqepilot_check" in sql:
            error = {"code": "PYTHON_LOAD_FAILED", "message": "no.", "line": 1, "column": 1}
            return [error | {"suggestions": None}] if args["text"] in self.refuses else []
        if "aqepilot_decide" in sql:
            facts = json.loads(args["facts"])
            self.asked.append((args["point"], args["text"]))
            if "max_bytes" in facts["left"]:
                return [{"reason": "NULL_ANSWER", "detail": None}]
            return [{"reason": "PYTHON_RAISED", "detail": "TypeError: as it should"}]
        return []


class Rows(list):
    def collect(self):
        return self


@pytest.fixture
def run(monkeypatch, tmp_path):
    def checked(spark, text=NAMED):
        @contextmanager
        def local_session():
            yield spark

        monkeypatch.setattr(check, "local_session", local_session)
        monkeypatch.setattr(gateway.Session, "allow", lambda _, text: allowed.append(text))
        (tmp_path / "sales.toml").write_text(text)
        problems = check.check_files([tmp_path / "sales.toml"])
        return [p._replace(where=p.where.rpartition("/")[2]) for p in problems]

    allowed = []
    checked.allowed = allowed
    return checked


def test_a_function_that_fails_on_made_facts_is_a_problem_with_its_place(run):
    spark = Spark()
    (problem,) = run(spark)
    assert (problem.code, problem.where) == ("PYTHON_RAISED", "sales.toml:4:3")
    assert "TypeError: as it should" in problem.message
    assert "python:sales.policies:split" in problem.message
    assert run.allowed == ["python:sales.policies:split"]
    assert set(spark.asked) == {("skew_join", "python:sales.policies:split")}


def test_the_facts_that_it_fails_on_can_be_made_again(run):
    (problem,) = run(Spark())
    call = re.search(r"aqepilot\.testing\.made_facts\(.*?\)\[\d+\]", problem.message)[0]
    assert eval(call, {"aqepilot": aqepilot}).left.max_bytes is None


def test_a_function_that_cannot_be_loaded_is_not_asked(run):
    spark = Spark(refuses=["python:sales.policies:split"])
    (problem,) = run(spark)
    assert (problem.code, problem.where) == ("PYTHON_LOAD_FAILED", "sales.toml:4:3")
    assert spark.asked == []


def test_sql_is_not_asked(run):
    text = NAMED.replace("python:sales.policies:split", "null")
    spark = Spark()
    assert run(spark, text) == []
    assert (spark.asked, run.allowed) == ([], [])


def checked_with_an_experiment(monkeypatch, tmp_path, experiment, policy=NAMED, refuses=()):
    @contextmanager
    def local_session():
        yield Spark(refuses)

    monkeypatch.setattr(check, "local_session", local_session)
    monkeypatch.setattr(check, "asked", lambda *_: [])
    monkeypatch.setattr(gateway.Session, "allow", lambda *_: None)
    (tmp_path / "e.toml").write_text(experiment)
    (tmp_path / "sales.toml").write_text(policy)
    problems = check.check_files([tmp_path / "e.toml", tmp_path / "sales.toml"])
    return [(p.code, p.where.rpartition("/")[2], p.message) for p in problems]


EXPERIMENT = '[experiment]\nname = "x"\narms = "spark:50,sales:50"\n'


def test_an_experiment_is_checked_with_its_policies(monkeypatch, tmp_path):
    assert checked_with_an_experiment(monkeypatch, tmp_path, EXPERIMENT) == []


@pytest.mark.parametrize(
    ("experiment", "policy", "where", "says"),
    [
        (EXPERIMENT.replace('50"', '60"'), NAMED, "e.toml:3:1", "110 percent together"),
        (EXPERIMENT.replace("sales", "other"), NAMED, "e.toml:3:1", "policy 'other', which none"),
        (EXPERIMENT, NAMED + 'mode = "shadow"\n', "e.toml:3:1", "'sales', whose mode is shadow"),
        (EXPERIMENT + 'when = ""\n', NAMED, "e.toml:4:1", "when: it is empty"),
        (EXPERIMENT + 'guardrails = "driver_time:0"\n', NAMED, "e.toml:4:1", "is no guard rail"),
        (
            EXPERIMENT + "when = \"query.fingerprint = 'f'\"\n",
            NAMED,
            "e.toml:4:1",
            "query.fingerprint is not known when an application starts",
        ),
        (EXPERIMENT + "when = \"query.jub = 'a'\"\n", NAMED, "e.toml:4:1", "line 1, column 1: no."),
    ],
)
def test_what_is_wrong_with_an_experiment_is_told_with_its_place(
    monkeypatch, tmp_path, experiment, policy, where, says
):
    refuses = ("query.jub = 'a'",)
    (problem,) = checked_with_an_experiment(monkeypatch, tmp_path, experiment, policy, refuses)
    assert problem[1] == where
    assert says in problem[2]


class Builder:
    """A builder of sessions that keeps what it is told."""

    def __init__(self):
        self.settings = {}

    def config(self, key, value):
        self.settings[key] = value
        return self

    def master(self, url):
        return self.config("spark.master", url)

    def appName(self, name):  # noqa: N802
        return self.config("spark.app.name", name)

    def getOrCreate(self):  # noqa: N802
        return self

    @property
    def sparkContext(self):  # noqa: N802
        return self

    def setLogLevel(self, level):  # noqa: N802
        pass

    def stop(self):
        pass


@pytest.mark.parametrize("master", [None, "local[3]"])
def test_where_spark_runs_is_left_to_spark_defaults_unless_given(monkeypatch, master):
    builder = Builder()
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", builder)
    monkeypatch.setattr("aqepilot.session.configure", lambda builder: builder)
    with check.local_session(master, "a name"):
        pass
    assert builder.settings.get("spark.master") == master
    assert builder.settings["spark.app.name"] == "a name"

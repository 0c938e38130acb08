"""The tab `aqepilot` of Spark's UI, and Spark's own page of a query with the query's decisions.

Live, and in a history server with the jar on its class path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import history_servers
import injections
import submitting
from aqepilot import control
from history_servers import History

SKEWED = "named_struct('left_splits', transform(left.bytes_by_partition_id, b -> int(2)))"
# One application after the other: what its pages say, by its name and their path.
JOB = r"""
import json, re, sys, urllib.error, urllib.parse, urllib.request
from pyspark.sql import SparkSession

asked = json.load(open(sys.argv[1]))
strings, pages = asked["strings"], {}

def get(spark, path):
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60000)
    try:
        with urllib.request.urlopen(spark.sparkContext.uiWebUrl + path, timeout=60) as page:
            return page.read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)

def quoted(text):
    text = text.replace("\\", "\\\\")
    return "'" + text.replace("'", "\\'") + "'"

def rows(spark):
    rows = spark.range(20000).repartition(6).selectExpr("id AS n", "if(id < 9000, 1, id) AS k")
    rows.createOrReplaceTempView("rows")
    spark.sparkContext.setJobDescription("a skewed join")
    spark.sql("SELECT a.n FROM rows a JOIN rows b ON a.k = b.n").count()

for name, settings in asked["applications"].items():
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    found = pages[name] = {"id": spark.sparkContext.applicationId}
    if name == "strings":
        for n, text in enumerate(strings):
            policy = f"CASE WHEN query.description = {quoted(text)} THEN 'SHUFFLE_HASH' END"
            spark.conf.set("spark.aqepilot.policy.p.join_selection", policy)
            spark.conf.set("spark.aqepilot.job", text)
            spark.sparkContext.setJobDescription(text)
            column = f"c{n} {text}".replace("`", "``")
            a, b = spark.range(9).toDF(f"c{n} {text}"), spark.range(9).toDF("b")
            a.join(b, a[f"`{column}`"] == b.b).count()
    else:
        rows(spark)
    has_ui = spark.sparkContext.uiWebUrl is not None
    for path in asked["paths"].get(name, asked["paths"][""]) if has_ui else ():
        found[path] = get(spark, path)
    queries = {int(n) for n in re.findall(r"query/\?id=(\d+)", found.get("/aqepilot/", ""))}
    for query in queries:
        for path in (f"/aqepilot/query/?id={query}", f"/SQL/execution/?id={query}"):
            found[path] = get(spark, path)
    if name == "strings":
        for text in strings:
            word = urllib.parse.quote(text)
            for path in (f"/aqepilot/?queries.sort={word}&queries.page={word}",
                         f"/aqepilot/query/?id={word}&decisions.sort={word}"):
                found[path] = get(spark, path)
    spark.stop()
json.dump(pages, open(sys.argv[2], "w"))
"""
SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.log.level": "WARN",
    "spark.sql.shuffle.partitions": "6",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.aqepilot.policies": "p",
    "spark.aqepilot.policy.p.skew_join": SKEWED,
    "spark.aqepilot.ask.deadline": "20s",
    "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
}
# Each after the one before, which is stopped: what an application has besides.
APPLICATIONS = {
    "split": {},
    "no facts": {"spark.aqepilot.log.facts": "none"},
    "no tab": {"spark.aqepilot.ui": "false", "spark.aqepilot.log.facts": "full"},
    "no UI": {"spark.aqepilot.ui": "true", "spark.ui.enabled": "false"},
    "strings": {"spark.ui.enabled": "true"},
    "plain": {"spark.sql.extensions": ""},
}
GUARDED = {
    "spark.sql.extensions": submitting.EXTENSION,
    "spark.acls.enable": "true",
    "spark.ui.view.acls": "alice",
}
PATHS = {
    "": ["/jobs/", "/aqepilot/", "/aqepilot/query/?id=0", "/aqepilot/query/?id=1",
         "/SQL/execution/?id=0", "/SQL/execution/?id=1"],
    "guarded": [f"{path}doAs={user}" for user in ("alice", "mallory")
                for path in ("/aqepilot/?", "/aqepilot/query/?id=1&", "/SQL/execution/?id=1&")],
}  # fmt: skip
TAB = re.compile(r'href="[^"]*/aqepilot/"')


class Ran(NamedTuple):
    """What the applications left.

    Attributes:
        pages: By the application's name and the page's path; its id as `id`.
        logs: The folder of their event logs.
    """

    pages: dict[str, dict[str, str]]
    logs: Path


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("ui")
    logs = folder / "logs"
    logs.mkdir()
    for n, text in enumerate(injections.STRINGS[:12]):
        control.lower(str(folder / "control.json"), "shadow", {"policy": f"p{n}"}, reason=text)
    applications = dict(APPLICATIONS)
    applications["strings"] |= {"spark.aqepilot.control": str(folder / "control.json")}
    applications["guarded"] = GUARDED
    asked = {"applications": applications, "paths": PATHS, "strings": injections.STRINGS}
    (folder / "asked.json").write_text(json.dumps(asked))
    done = submitting.submit(
        folder / "job",
        JOB,
        conf=SETTINGS | {"spark.eventLog.dir": logs.as_uri()},
        job_words=[str(folder / "asked.json"), str(folder / "pages.json")],
        own_jvm=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return Ran(json.loads((folder / "pages.json").read_text()), logs)


@pytest.fixture(scope="module")
def history(ran: Ran, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    log = tmp_path_factory.mktemp("history") / "log"
    with history_servers.running(ran.logs, log, jar=submitting.spark_jar()) as server:
        yield server


def decisions(page: str) -> str:
    """What a page says of decisions, without where it stands and how long tasks took."""
    text = re.sub(r"<[^>]+>", " ", page[page.index("<h4>Decisions") :])
    return re.sub(r"\s+", " ", text[: text.index("Jump to") if "Jump to" in text else None])


def with_decisions(pages: dict[str, str]) -> str:
    """The id of the query that has decisions."""
    queries = re.findall(r"aqepilot/query/\?id=(\d+)", pages["/aqepilot/"])
    assert queries, pages["/aqepilot/"]
    return str(queries[0])


def test_a_live_ui_has_the_tab_and_each_decision(ran: Ran) -> None:
    pages = ran.pages["split"]
    assert TAB.search(pages["/jobs/"])
    overview = pages["/aqepilot/"]
    for part in ("skew_join", "enforce", "submitted", "a skewed join", "succeeded"):
        assert part in overview
    query = with_decisions(pages)
    page = pages[f"/aqepilot/query/?id={query}"]
    for part in (
        "left_splits",
        "largest part",
        "adopted",
        "Task time",
        f"/SQL/execution/?id={query}",
    ):
        assert part in page
    spark = pages[f"/SQL/execution/?id={query}"]
    assert 'id="aqepilot-decisions"' in spark
    assert f"/aqepilot/query/?id={query}" in spark


def test_a_history_server_shows_the_same(ran: Ran, history: History) -> None:
    pages = ran.pages["split"]
    query, app = with_decisions(pages), pages["id"]
    page = f"/aqepilot/query/?id={query}"
    assert TAB.search(history.get(app, "/jobs/"))
    assert decisions(history.get(app, page)) == decisions(pages[page])
    assert f"/history/{app}/SQL/execution/?id={query}" in history.get(app, page)
    assert 'id="aqepilot-decisions"' in history.get(app, f"/SQL/execution/?id={query}")


def test_facts_that_are_not_logged_are_not_shown(ran: Ran, history: History) -> None:
    pages = ran.pages["no facts"]
    path = f"/aqepilot/query/?id={with_decisions(pages)}"
    for page in (pages[path], history.get(pages["id"], path)):
        assert "The log has no facts of it." in page
        assert "left_splits" in page


@pytest.mark.parametrize("name", ["no tab", "plain"])
def test_there_is_no_tab_where_it_is_off_or_nothing_was_decided(
    ran: Ran, history: History, name: str
) -> None:
    pages = ran.pages[name]
    shown = [pages, {path: history.get(pages["id"], path) for path in PATHS[""]}]
    for at in shown:
        assert "Completed Jobs" in at["/jobs/"]
        assert not TAB.search(at["/jobs/"])
        assert "aqepilot-decisions" not in at["/SQL/execution/?id=0"] + at["/SQL/execution/?id=1"]
        assert "What Spark knew" not in at["/aqepilot/query/?id=1"]


def test_a_driver_without_a_ui_works_and_its_log_is_shown(ran: Ran, history: History) -> None:
    assert list(ran.pages["no UI"]) == ["id"]
    assert "skew_join" in history.get(ran.pages["no UI"]["id"], "/aqepilot/")


@pytest.mark.parametrize("jar", ["none", "another Scala's"])
def test_a_history_server_without_its_jar_shows_applications(
    ran: Ran, tmp_path: Path, jar: str
) -> None:
    """Spark cannot load the classes of our events from a jar of another Scala."""
    path, name = None, "split"
    if jar != "none":
        scala = "2.13" if "_2.12-" in submitting.spark_jar().name else "2.12"
        (path,) = submitting.spark_jar().parent.glob(f"aqepilot-spark-3.5_{scala}-*.jar")
        name = "plain"
    with history_servers.running(ran.logs, tmp_path / "log", jar=path) as server:
        page = server.get(ran.pages[name]["id"], "/jobs/")
    assert "Completed Jobs" in page
    assert not TAB.search(page)
    warned = "this jar was not built for Scala" in (tmp_path / "log").read_text()
    assert warned == (path is not None)


def test_no_text_of_a_user_becomes_an_element(ran: Ran, history: History) -> None:
    pages = ran.pages["strings"]
    ours = {path: page for path, page in pages.items() if path.startswith("/aqepilot/")}
    beneath = {
        path: page[page.index('id="aqepilot-decisions"') :]
        for path, page in pages.items()
        if "aqepilot-decisions" in page
    }
    again = {path: history.get(pages["id"], path) for path in ours if "/query/?id=" in path[:22]}
    assert len(beneath) >= len(injections.STRINGS) <= len(again)
    for path, page in [*ours.items(), *beneath.items(), *again.items()]:
        assert page != "500", path
        assert injections.elements(page) == [], path
    shown = pages["/aqepilot/"] + "".join(again.values())
    assert shown.count("data-injected") > 50


def test_who_may_not_view_the_ui_may_not_view_the_tab(ran: Ran) -> None:
    for path in PATHS["guarded"]:
        page = ran.pages["guarded"][path]
        assert (page == "403") == path.endswith("mallory"), page[:500]

package org.apache.spark.sql.aqepilot.ui

import scala.jdk.CollectionConverters._
import scala.xml.{Node, Utility}

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.aqepilot.reasons.{Reason, Remedy}
import org.apache.spark.ui.WebUIPage
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.log.AqePilotFate

class PagesSuite extends AnyFunSuite {
  import MadeRecord._

  private def text(nodes: Seq[Node]): String =
    nodes.toString.replaceAll("<[^>]*>", "").replace("&lt;", "<").replace("&gt;", ">")
      .replace("&quot;", "\"").replaceAll("\\s*\n\\s*", "")

  /** The tags, without the attributes' values. */
  private def tags(nodes: Seq[Node]): Seq[String] =
    "<[^>]*>".r.findAllIn(nodes.toString).map(_.replaceAll("\"[^\"]*\"", "\"\"")).toSeq

  /** Without how long the application has run. */
  private def timeless(nodes: Seq[Node]): String = nodes.toString.replaceAll("-time=\"\\d+\"", "")

  /** Texts that users may give to what they can name, which Python's pages are held to as well. */
  private lazy val injections: Seq[String] =
    new ObjectMapper().readTree(getClass.getResource("/injections.json"))
      .elements.asScala.flatMap(_.elements.asScala).map(_.asText).toSeq

  private def page(tab: RecordTab, prefix: String): WebUIPage =
    tab.pages.find(_.prefix == s"aqepilot$prefix").get

  private val split = Seq(
    decision(1, facts = Some(s"{$Facts}")),
    closed(1, Seq(AqePilotFate(1, "adopted", Some("SortMergeJoin, 10 tasks, 1 partition split"))))
  )

  test("the overview has what is in force, and each query") {
    val refused = decision(2, Some(2)).copy(applied = false, reason = "ONE_MAPPER")
    val wrong = loaded().copy(point = "join_reorder", error = Some("TYPE: no double"))
    val lost = control.copy(problem = Some("it is gone"))
    val tab = MadeRecord.tab(
      stored(split ++ Seq(loaded("skew > 1"), wrong, unit, control, lost, refused): _*)
    )
    val shown = text(page(tab, "").render(request()))
    for (
      what <- Seq(
        "skew > 1",
        "8b3fd2129626",
        "policy sales is at most shadow",
        "POLICY_TEXT_INVALID",
        "TYPE: no double",
        "CONTROL_UNREACHABLE",
        "it is gone",
        "spark:50,sales:50",
        "1 earlier reading"
      )
    ) assert(shown.contains(what))
    assert(page(tab, "").render(request()).toString.contains("/base/aqepilot/query/?id=2"))
  }

  test(
    "a query's page has what Spark knew, the answer, what came of it, and the sizes before and after"
  ) {
    val tab = MadeRecord.tab(stored(split: _*))
    val shown = text(page(tab, "/query").render(request("id" -> "1")))
    for (
      what <- Seq(
        "join 1",
        "sales, enforce, revision 8b3fd2129626",
        "left_splits",
        "SortMergeJoin, 8 tasks",
        "adopted",
        "Ran: SortMergeJoin, 10 tasks, 1 partition split",
        "left, largest190.4 KiB",
        "left, largest partabout 63.5 KiB",
        "mean of a task, Spark",
        "in 10 tasks",
        "version 3"
      )
    ) assert(shown.contains(what), what)
  }

  test("the line of a group of facts has none that is empty") {
    val none = s"{${Facts.replace("""["l"]""", "[]")}}"
    val tab = MadeRecord.tab(stored(decision(1, facts = Some(none))))
    val shown = text(page(tab, "/query").render(request("id" -> "1")))
    assert(shown.contains("left shuffle bytes 429.4 KiB, num partitions 8"), shown)
  }

  test("a refused decision says what would be needed") {
    val refused = decision(1).copy(applied = false, reason = "ONE_MAPPER", detail = Some("why"))
    val tab = MadeRecord.tab(stored(refused))
    val shown = text(page(tab, "/query").render(request("id" -> "1")))
    assert(shown.contains(Reason.OneMapper.meaning) && shown.contains("why"))
    assert(shown.contains("lower spark.sql.files.maxPartitionBytes"))
    assert(shown.contains("The log has no facts of it."))
  }

  test("each reason has a remedy to show") {
    assert(Reason.all.filter(r => Remedy.ofReason(r.code).isEmpty).isEmpty)
  }

  test("what is asked for and is not there gives a page, not an error") {
    val tab = MadeRecord.tab(stored(split: _*))
    for (id <- Seq("2", "x", "", "99999999999999999999"))
      assert(text(page(tab, "/query").render(request("id" -> id))).contains("no such query"))
    assert(text(page(tab, "/query").render(request())).contains("no such query"))
    val odd = Seq("page" -> "-3", "pageSize" -> "0", "sort" -> "x", "desc" -> "maybe")
    val asked = odd.map { case (key, value) => s"queries.$key" -> value }
    assert(page(tab, "").render(request(asked: _*)).toString.contains("query/?id=1"))
    val empty = MadeRecord.tab(stored())
    assert(text(page(empty, "").render(request())).contains("No query has had a decision."))
  }

  test("thousands of decisions come in pages, sorted as asked") {
    val many = (1L to 2000L).map(i => decision(i, facts = if (i == 1) Some(s"{$Facts}") else None))
    val tab = MadeRecord.tab(stored(many: _*))
    val asked = Seq("id" -> "1", "decisions.page" -> "20", "decisions.pageSize" -> "100")
    val shown = page(tab, "/query").render(request(asked: _*)).toString
    assert(shown.split("<strong>join 1</strong>").length == 101)
  }

  test("Spark's own page of a query has its decisions beneath, and is as it was for others") {
    val tab = MadeRecord.tab(stored(split: _*))
    val own = new WebUIPage("execution") {
      override def render(request: org.apache.spark.sql.aqepilot.spark.Servlets.Request) =
        tab.framed(request, "Details")(<p>Spark's</p>)
    }
    val ours = new PageWithDecisions(own, tab)
    val shown = ours.render(request("id" -> "1"))
    assert(text(shown).contains("1 decision, 1 applied, 1 adopted, 0 refused."))
    assert(shown.toString.split("aqepilot-decisions").length == 2)
    assert(shown.toString.startsWith("<html"))
    for (id <- Seq("2", "x"))
      assert(timeless(ours.render(request("id" -> id))) == timeless(own.render(request())))
  }

  test("no text of anybody becomes an element or an attribute") {
    assert(injections.size >= 50)
    for (string <- injections) {
      val harmless = string.map(c => if ("<>&\"'`[]()".contains(c)) 'x' else c)
      val tab = MadeRecord.tab(everywhere(string))
      val plain = MadeRecord.tab(everywhere(harmless))
      for ((prefix, id) <- Seq("" -> "1", "/query" -> "1", "/query" -> "-1")) {
        val shown = page(tab, prefix).render(request("id" -> id))
        assert(tags(shown) == tags(page(plain, prefix).render(request("id" -> id))), string)
      }
      val escaped = Utility.escape(string)
      assert(page(tab, "/query").render(request("id" -> "1")).toString.contains(escaped), string)
      for (key <- Seq("sort", "desc", "page", "pageSize"); tag <- Seq("queries", "decisions")) {
        val asked = request("id" -> "1", s"$tag.$key" -> string)
        for (prefix <- Seq("", "/query"))
          assert(!page(tab, prefix).render(asked).toString.contains("injected(1)>"), string)
      }
    }
  }

  /** Events with a text wherever somebody may put one. */
  private def everywhere(text: String) = {
    val some = Some(text)
    val json = com.fasterxml.jackson.databind.node.JsonNodeFactory.instance.textNode(text).toString
    val facts = s"""{"left":{"tables":[$json],"type":$json,"condition":$json}}"""
    val e = decision(1, facts = Some(facts)).copy(
      sessionId = text,
      tables = some,
      policy = some,
      revision = some,
      mode = some,
      answer = some,
      sparkAnswer = some,
      sparkStrategy = some,
      detail = some,
      reason = text,
      point = text,
      subject = some,
      applied = false
    )
    val end = closed(1, Seq(AqePilotFate(1, text, some))).copy(
      error = some,
      fingerprint = some,
      job = some,
      run = some,
      experiment = some,
      unit = some,
      arm = some
    )
    val policy = loaded(text).copy(
      policy = text,
      point = text,
      revision = text,
      when = some,
      mode = text,
      source = text,
      limit = some
    )
    val drawn = unit.copy(
      experiment = text,
      unitKind = text,
      unit = text,
      arm = text,
      arms = text,
      metric = text,
      what = text,
      detail = some,
      job = text,
      run = text
    )
    val file = control.copy(path = text, rules = Seq(text), problem = some)
    stored(
      e,
      e.copy(decisionId = 2, executionId = None),
      end,
      policy,
      policy.copy(error = some, policy = "other"),
      drawn,
      file,
      file
    )
  }
}

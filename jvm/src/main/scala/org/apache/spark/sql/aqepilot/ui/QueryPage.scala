package org.apache.spark.sql.aqepilot.ui

import scala.util.Try
import scala.xml.{Node, Text}

import org.apache.spark.sql.aqepilot.spark.Servlets
import org.apache.spark.ui.{UIUtils, WebUIPage}

import io.aqepilot.log.AqePilotQueryClosed

/** One query, `?id=` of Spark's execution: how it went, and each of its decisions. */
final private[ui] class QueryPage(tab: RecordTab) extends WebUIPage("query") {
  import Html._

  private val decisions = new DecisionsTable(tab.record)

  override def render(request: Servlets.Request): Seq[Node] = {
    val query = Option(request.getParameter("id")).flatMap(id => Try(id.toLong).toOption)
      .flatMap(tab.record.query)
    val title = query.fold("Decisions for a query") {
      case q if q.id == KeptQuery.NotRun => "Decisions for plans that no query ran"
      case q                             => s"Decisions for query ${q.id}"
    }
    tab.framed(request, title)(query.fold(missing(request))(whole(_, request)))
  }

  private def missing(request: Servlets.Request): Seq[Node] =
    <p>{"The record has no such query, or it made room. "}<a href={
      tab.path(request)
    }>All queries</a></p>

  private def whole(query: KeptQuery, request: Servlets.Request): Seq[Node] = {
    val all = tab.record.decisions(query.id)
    val stages = tab.execution(query.id).map(_.stages).getOrElse(Set.empty[Int])
    summary(query, request) ++ TaskTimes.of(stages, tab, request) ++
      section(
        "Decisions",
        (if (query.leftOut == 0) Nil
         else <p>{
           s"${count(query.leftOut.toLong, "decision")} left out, as there was no room."
         }</p>) ++
          (if (all.isEmpty) <p>It had no decision.</p>
           else decisions.nodes(all, tab.queryPath(request, query.id), request))
      )
  }

  private def summary(query: KeptQuery, request: Servlets.Request): Seq[Node] = {
    val execution = tab.execution(query.id)
    val closed = query.closed
    val items = Seq[(String, Option[Seq[Node]])](
      "Spark's page" -> Some(query.id).filter(_ != KeptQuery.NotRun).map { id =>
        <a href={tab.executionPath(request, id)}>{s"query $id"}</a>
      },
      "Description" -> execution.map(_.description).filter(_.nonEmpty).map(words),
      "State" -> text(Some(QueryState.of(query))),
      "Error" -> closed.flatMap(_.error).map(words),
      "Duration" -> text(for (e <- execution; end <- e.completionTime)
        yield UIUtils.formatDuration(end.getTime - e.submissionTime)),
      "Planning" -> text(closed.flatMap(_.planningMillis).map(UIUtils.formatDuration)),
      "Asking" -> text(closed.flatMap(_.askedMicros).map(micros => f"${micros / 1000}%.1f ms")),
      "Job" -> text(closed.flatMap(ofJob)),
      "Experiment" -> text(closed.flatMap(ofExperiment)),
      "Control file" -> text(closed.flatMap(_.controlVersion).map(v => s"version $v")),
      "Fingerprint" -> closed.flatMap(_.fingerprint).map(code),
      "Events that Spark dropped" -> text(
        closed.map(_.droppedEvents).filter(_ > 0).map(number)
      )
    )
    <ul class="list-unstyled">{
      items.collect { case (name, Some(value)) => <li><strong>{s"$name: "}</strong>{value}</li> }
    }</ul>
  }

  private def text(value: Option[String]): Option[Seq[Node]] = value.map(Text(_))

  private def ofJob(c: AqePilotQueryClosed): Option[String] = c.job.map { job =>
    job + c.run.fold("")(r => s", run $r") + c.attempt.fold("")(n => s", attempt $n")
  }

  private def ofExperiment(c: AqePilotQueryClosed): Option[String] = c.experiment.map { name =>
    name + c.arm.fold("")(a => s", arm $a") + c.unit.fold("")(u => s", unit $u")
  }
}

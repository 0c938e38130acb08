package org.apache.spark.sql.aqepilot.ui

import scala.util.Try
import scala.xml.{Elem, Node, NodeSeq}

import org.apache.spark.sql.aqepilot.spark.{FailOpen, Servlets}
import org.apache.spark.ui.WebUIPage

/** Spark's own page of a query, with the query's decisions beneath; without any, and where ours cannot be shown, as it
  * is.
  *
  * @param own
  *   Spark's
  */
final private[ui] class PageWithDecisions(own: WebUIPage, tab: RecordTab)
    extends WebUIPage("execution") {

  private val MostDecisions = 20
  private val table = new DecisionsTable(tab.record)

  override def render(request: Servlets.Request): Seq[Node] = {
    val page = own.render(request)
    FailOpen("ui", page) {
      val panel = for {
        id <- Option(request.getParameter("id")).flatMap(text => Try(text.toLong).toOption)
        query <- tab.record.query(id) if query.decisions > 0
      } yield panelOf(query, request)
      // Spark writes a page by its toString.
      panel.fold(page)(nodes => NodeSeq.fromSeq(page.map(beneath(_, nodes))))
    }
  }

  private def panelOf(query: KeptQuery, request: Servlets.Request): Node = {
    val all = tab.record.decisions(query.id)
    <div class="row">
      <div class="col-12 aqepilot" id="aqepilot-decisions">
        {Bars.style}
        <h4>aqepilot</h4>
        <p>{
      s"${Html.count(all.size.toLong, "decision")}, ${query.applied} applied, ${query.adopted} adopted, " +
        s"${query.refused} refused. "
    }<a href={tab.queryPath(request, query.id)}>What Spark knew, and all decisions</a></p>
        {table.panel(all.take(MostDecisions))}
      </div>
    </div>
  }

  /** The page with the panel as the last of its content. */
  private def beneath(node: Node, panel: Node): Node = node match {
    case e: Elem if e.label == "html" || e.label == "body" =>
      e.copy(child = e.child.map(beneath(_, panel)))
    case e: Elem if e.label == "div" && (e \@ "class").split(' ').contains("container-fluid") =>
      e.copy(child = e.child ++ panel)
    case other => other
  }
}

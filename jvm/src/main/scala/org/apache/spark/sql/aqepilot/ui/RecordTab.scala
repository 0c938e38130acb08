package org.apache.spark.sql.aqepilot.ui

import scala.util.Try
import scala.xml.Node

import org.apache.spark.sql.aqepilot.spark.{FailOpen, Servlets}
import org.apache.spark.sql.execution.ui.{SQLAppStatusStore, SQLExecutionUIData}
import org.apache.spark.ui.{SparkUI, SparkUITab, UIUtils}

/** The tab `aqepilot` of Spark's UI.
  *
  * Its pages are handlers of the UI like Spark's own, so the filters and view ACLs of the UI hold for them. They read
  * when they are opened.
  */
final private[ui] class RecordTab(val ui: SparkUI) extends SparkUITab(ui, RecordTab.Prefix) {

  override val name: String = "aqepilot"

  /** Behind Spark's own. */
  override def displayOrder: Int = 1

  val record = new StoredRecord(ui.store.store)

  private val sql = new SQLAppStatusStore(ui.store.store)

  attachPage(new OverviewPage(this))
  attachPage(new QueryPage(this))

  /** What Spark's own page shows of a query; none where Spark keeps it no more. */
  def execution(id: Long): Option[SQLExecutionUIData] =
    FailOpen("ui", Option.empty[SQLExecutionUIData])(sql.execution(id))

  /** The settings that the application was submitted with, as Spark's page of its environment shows them. */
  def submitted: Map[String, String] =
    Try(ui.store.environmentInfo().sparkProperties.toMap).getOrElse(Map.empty)

  def path(request: Servlets.Request): String = within(request, s"/${RecordTab.Prefix}/")

  def queryPath(request: Servlets.Request, id: Long): String =
    within(request, s"/${RecordTab.Prefix}/query/?id=$id")

  /** The page of Spark's own. */
  def executionPath(request: Servlets.Request, id: Long): String =
    within(request, s"/SQL/execution/?id=$id")

  def stagePath(request: Servlets.Request, id: Int, attempt: Int): String =
    within(request, s"/stages/stage/?id=$id&attempt=$attempt")

  private def within(request: Servlets.Request, page: String): String =
    UIUtils.prependBaseUri(request, basePath, page)

  /** A page of the tab, by Spark's own frame. */
  def framed(request: Servlets.Request, title: String)(content: => Seq[Node]): Seq[Node] =
    UIUtils.headerSparkPage(
      request,
      title,
      <div class="aqepilot">{Bars.style}{content}</div>,
      this
    )
}

private[ui] object RecordTab {
  val Prefix = "aqepilot"
}

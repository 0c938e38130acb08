package org.apache.spark.sql.aqepilot.ui

import scala.xml.{Node, Text}

import org.apache.spark.sql.aqepilot.spark.{FailOpen, Servlets}
import org.apache.spark.status.AppStatusStore
import org.apache.spark.status.api.v1.StageData

/** How long the tasks of a query's stages took: the median beside the longest, for which the others wait. */
private[ui] object TaskTimes {

  private val MostStages = 10
  private val MostTasks = 5000

  /** Of the stages with most task time; reads each of their tasks. */
  def of(stages: Iterable[Int], tab: RecordTab, request: Servlets.Request): Seq[Node] =
    FailOpen("ui", Seq.empty[Node]) {
      val store = tab.ui.store
      val dearest = stages.toSeq.flatMap(id => store.asOption(store.lastStageAttempt(id)))
        .filter(s => s.numCompleteTasks > 1 && s.numTasks <= MostTasks)
        .sortBy(-_.executorRunTime).take(MostStages)
      val rows = dearest.flatMap(s => row(s, durations(s, store), tab, request))
      if (rows.isEmpty) Nil
      else
        Html.section(
          "Task time",
          <table class="table table-sm"><tbody>{rows}</tbody></table>
        )
    }

  private def durations(s: StageData, store: AppStatusStore): Seq[Long] =
    store.taskList(s.stageId, s.attemptId, MostTasks).filter(_.status == "SUCCESS")
      .flatMap(_.duration).sorted

  private def row(s: StageData, millis: Seq[Long], tab: RecordTab, request: Servlets.Request) =
    if (millis.isEmpty) None
    else {
      val (median, longest) = (millis(millis.size / 2), millis.last)
      val link = tab.stagePath(request, s.stageId, s.attemptId)
      Some(
        <tr>
          <td><a href={link}>{s"stage ${s.stageId}"}</a></td>
          <td>{Html.count(millis.size.toLong, "task")}</td>
          <td>{
          Bars(Seq(bar("median", median, isWorst = false), bar("longest", longest, isWorst = true)))
        }</td>
          <td>{Text(s.name.take(100))}</td>
        </tr>
      )
    }

  private def bar(label: String, millis: Long, isWorst: Boolean) =
    Bar(label, millis.toDouble, s"${Html.number(millis)} ms", isWorst)
}

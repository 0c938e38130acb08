package org.apache.spark.sql.aqepilot.ui

import java.lang.reflect.Modifier

import org.apache.spark.scheduler.SparkListener
import org.apache.spark.sql.aqepilot.decision.Health
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.{Application, FailOpen, Servlets}
import org.apache.spark.sql.execution.ui.SQLTab
import org.apache.spark.ui.{SparkUI, WebUIPage}
import org.apache.spark.util.kvstore.KVStore
import org.apache.spark.{SparkConf, SparkContext}

/** Where Spark's UI gets the tab `aqepilot`, and its page of a query the query's decisions.
  *
  * A live UI has the tab from the first session with the extension on, a history server's for each application with
  * events of ours.
  */
private[aqepilot] object Tabs {

  private val live = new Application.Value[Option[RecordTab]](sc =>
    sc.ui.filter(_ => isOn(sc.conf) && fits).map { ui =>
      val tab = new RecordTab(ui)
      ui.attachTab(tab)
      // Spark makes its own tab when the first session is used.
      var hasPanel = false
      val listener = RecordListener(
        ui.store.store,
        sc.conf,
        () => if (!hasPanel) hasPanel = attachPanel(ui, tab)
      )
      sc.listenerBus.addToStatusQueue(listener)
      tab
    }
  )

  /** When a session starts; the application's first has something to do. */
  def begin(sc: SparkContext): Unit = {
    live.of(sc)
    ()
  }

  /** Of a log that a history server opens. */
  def listeners(conf: SparkConf, store: KVStore): Seq[SparkListener] =
    if (isOn(conf)) Seq(RecordListener(store, conf, () => ())) else Nil

  /** When a history server shows what it has opened. */
  def reopened(ui: SparkUI): Unit =
    if (new StoredRecord(ui.store.store).nonEmpty && isRightJar && fits) {
      val tab = new RecordTab(ui)
      ui.attachTab(tab)
      attachPanel(ui, tab)
      ()
    }

  private def isOn(conf: SparkConf): Boolean =
    !conf.getOption(AqePilotConf.Ui.key).exists(_.trim == "false")

  private def isRightJar: Boolean = {
    Health.wrongJar.foreach(why => FailOpen.warnOnce(s"the tab is left out: $why"))
    Health.isRightJar
  }

  /** Whether a page of this Spark is asked as one of ours answers: a vendor's may have the servlets of another Spark. */
  private def fits: Boolean = {
    val isAsked =
      try
        classOf[WebUIPage].getMethods.exists { m =>
          m.getName == "render" && Modifier.isAbstract(m.getModifiers) &&
          m.getParameterTypes.toSeq == Seq(classOf[Servlets.Request])
        }
      catch { case _: LinkageError => false }
    if (!isAsked)
      FailOpen.warnOnce(
        s"Spark's UI has no tab aqepilot: this Spark (${Health.sparkVersion}) has other servlets than " +
          s"Apache Spark ${Health.build.sparkMinor}"
      )
    isAsked
  }

  /** Whether Spark has the page that it goes onto. */
  private def attachPanel(ui: SparkUI, tab: RecordTab): Boolean = FailOpen("ui", true) {
    val pages = ui.getTabs.collect { case sql: SQLTab => sql }.flatMap(_.pages)
    val executions = pages.find(_.prefix.endsWith("/execution"))
    executions.foreach { page =>
      val own = new PageWithDecisions(page, tab)
      own.prefix = page.prefix
      ui.detachPage(page)
      ui.attachPage(own)
    }
    executions.isDefined
  }
}

package org.apache.spark.sql.aqepilot

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.history.History
import org.apache.spark.sql.aqepilot.points.cost_evaluation.CostEvaluatorInstall
import org.apache.spark.sql.aqepilot.record.DecisionLog
import org.apache.spark.sql.aqepilot.run.Control
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.aqepilot.ui.Tabs

/** What happens once, when the extension is applied to a new session. */
object Start {

  /** Registers, and looks at what was submitted.
    *
    * A fault leaves Spark as it is, but for a submitted policy that is wrong where
    * `spark.aqepilot.strict=true` asks for it to fail the application.
    */
  def apply(registrations: => Unit): Unit = {
    // Each by itself: what a vendor's Spark lacks for one may be there for the others.
    FailOpen("record", ())(DecisionLog.begin())
    val settings = AqePilotConf.settings
    FailOpen("settings", ())(AqePilotConf.register(settings))
    FailOpen("start", ())(registrations)
    FailOpen.recover(DecisionPoints.CostEvaluation)(
      Health.after(_, DecisionPoints.CostEvaluation)
    ) {
      if (Health.isRightJar) SparkContext.getActive.foreach(sc => CostEvaluatorInstall(sc.conf))
    }
    def whereRight(begin: SparkContext => Unit) =
      if (Health.isRightJar) SparkContext.getActive.foreach(begin)
    FailOpen("ui", ())(whereRight(Tabs.begin))
    FailOpen("history", ())(whereRight(History.begin))
    FailOpen("control", ())(whereRight(Control.begin))
    SparkContext.getActive.foreach(Submitted.begin)
    FailOpen("history", ())(whereRight(History.await))
  }
}

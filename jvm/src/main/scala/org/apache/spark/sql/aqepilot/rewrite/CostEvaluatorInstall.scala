package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.SparkConf
import org.apache.spark.sql.aqepilot.{Health, Sessions}
import org.apache.spark.sql.execution.adaptive.CostEvaluator
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.decision.{CostEvaluationPoint, DecisionPoint}

/** Makes [[PolicyCostEvaluator]] the cost evaluator of this application's sessions.
  *
  * By the running application's configuration alone: submitted, the setting would fail every query where the
  * jar is missing. An evaluator that the application was submitted with is wrapped; one that a session sets for
  * itself stays, and the point is off there.
  *
  * Source: `spark.sql.adaptive.customCostEvaluatorClass`.
  */
object CostEvaluatorInstall {

  private val setting = SQLConf.ADAPTIVE_CUSTOM_COST_EVALUATOR_CLASS
  private val ours = classOf[PolicyCostEvaluator].getName

  /** The evaluator that the application was submitted with. */
  @volatile private var theirs: Option[String] = None

  /** Before the first session's state is built out of this configuration. */
  def apply(running: SparkConf): Unit = synchronized {
    if (Health.isLive(CostEvaluationPoint)) {
      val found = running.getOption(setting.key)
      if (!found.contains(ours)) {
        theirs = found
        running.set(setting.key, ours)
      }
    }
  }

  /** What Spark would evaluate with, were we not there. */
  def builtIn(running: SparkConf): CostEvaluator =
    theirs.fold(SparkCosts.evaluator(Sessions.active.fold(SQLConf.get)(_.sessionState.conf)))(
      CostEvaluator.instantiate(_, running)
    )

  /** Whether the adaptive plans of a session are compared by [[PolicyCostEvaluator]]. */
  def isOurs(conf: SQLConf): Boolean = conf.getConf(setting).contains(ours)

  /** Why the point is off in a session. */
  def reasonOff(point: DecisionPoint, conf: SQLConf): Option[String] =
    if (point != CostEvaluationPoint) None
    else
      conf.getConf(setting) match {
        case Some(`ours`) => None
        case Some(own)    => Some(s"the session's own ${setting.key}=$own stays")
        case None         =>
          Some("the session was made before the extension was applied, or unset " + setting.key)
      }
}

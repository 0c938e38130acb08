package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.aqepilot.decision.{Decided, FateReader}
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.log.AqePilotFate

/** What became of costs: the plan with which the query went on, known as soon as they were compared. */
object CostFates extends FateReader {

  /** With which plan a query went on, and with which it would have. */
  final case class Chosen(isReplan: Boolean, isSparksReplan: Boolean)

  /** The plan that is chosen, for a person. */
  def plan(isReplan: Boolean): String = if (isReplan) "the re-plan" else "the plan it had"

  /** The same as the detail of a decision that was applied. */
  def detail(isReplan: Boolean): String = s"the query went on with ${plan(isReplan)}"

  override def read(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] =
    decisions.filter(_.event.applied).collect {
      case Decided(event, _, Some(Chosen(isReplan, isSparksReplan))) =>
        val fate = if (isReplan == isSparksReplan) Fate.NoChange else Fate.Adopted
        AqePilotFate(event.decisionId, fate.code, Some(plan(isReplan)))
    }
}

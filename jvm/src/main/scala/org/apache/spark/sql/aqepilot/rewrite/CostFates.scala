package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.decision.Fate
import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** What became of costs: the plan with which the query went on, known as soon as they were compared. */
object CostFates extends FateReader {

  private val WentOn = "the query went on with "

  /** The plan that is chosen, for a person. */
  def plan(isReplan: Boolean): String = if (isReplan) "the re-plan" else "the plan it had"

  /** The same as the detail of a decision that was applied. */
  def detail(isReplan: Boolean): String = WentOn + plan(isReplan)

  override def read(finalPlan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate] =
    for {
      d <- decisions if d.applied
      ran <- d.detail.map(_.stripPrefix(WentOn))
    } yield {
      val fate = if (d.sparkStrategy.contains(ran)) Fate.NoChange else Fate.Adopted
      AqePilotFate(d.decisionId, fate.code, Some(ran))
    }
}

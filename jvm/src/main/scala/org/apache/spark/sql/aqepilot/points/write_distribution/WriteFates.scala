package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.decision.{Decided, FateReader}
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.Exchange

import io.aqepilot.log.AqePilotFate

/** What became of decisions on writes: found on the final plan's shuffles, by the id of the write. */
object WriteFates extends FateReader {

  /** Of the write that a decision is about. */
  final case class WriteId(id: Long)

  /** What Spark runs alone. */
  val Plain = "no rebalance"

  override def read(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] = {
    val ran = nodes(finalPlan).flatMap(rebalance).toMap
    decisions.filter(_.event.applied).map { d =>
      val strategy = d.id.collect { case WriteId(id) => id }.flatMap(ran.get)
      val isWanted = d.chosen.exists {
        case decision: WriteDecision => decision.rebalances
        case _                       => false
      }
      val fate =
        if (strategy.isDefined) Fate.Adopted
        else if (isWanted) Fate.Gone
        else Fate.NoChange
      AqePilotFate(d.event.decisionId, fate.code, Some(strategy.getOrElse(Plain)))
    }
  }

  private def rebalance(plan: SparkPlan): Option[(Long, String)] = plan match {
    case _: Exchange | _: ShuffleQueryStageExec =>
      plan.logicalLink.collect { case r: RebalancePartitions => r }.flatMap { r =>
        r.getTagValue(Distribution.tag).map(_ -> strategy(r))
      }
    case _ => None
  }

  private def strategy(r: RebalancePartitions): String =
    if (r.partitionExpressions.isEmpty) "rebalance"
    else r.partitionExpressions.collect { case a: Attribute => a.name }.mkString(
      "rebalance by ",
      ", ",
      ""
    )
}

package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.exchange.Exchange

import io.aqepilot.decision.{Fate, WriteDistributionPoint}
import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** What became of decisions on writes: found on the final plan's shuffles, by the id of the write. */
object WriteFates extends FateReader {

  /** How the subjects of these decisions begin; the write's id follows. */
  val Subject = "write "

  /** What Spark runs alone. */
  val Plain = "no rebalance"

  /** The id of the write that a decision is about. */
  def id(d: AqePilotDecision): Option[Long] =
    if (d.point != WriteDistributionPoint.name) None
    else d.subject.filter(_.startsWith(Subject)).map(_.stripPrefix(Subject).toLong)

  override def read(finalPlan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate] = {
    val ran = nodes(finalPlan).flatMap(rebalance).toMap
    decisions.filter(_.applied).map { d =>
      val found = id(d).flatMap(ran.get)
      val fate =
        if (found.isDefined) Fate.Adopted
        else if (d.answer.exists(_.contains("\"rebalance\":true"))) Fate.Superseded
        else Fate.NoChange
      AqePilotFate(d.decisionId, fate.code, Some(found.getOrElse(Plain)))
    }
  }

  private def rebalance(plan: SparkPlan): Option[(Long, String)] = plan match {
    case _: Exchange | _: ShuffleQueryStageExec =>
      plan.logicalLink.collect { case r: RebalancePartitions => r }.flatMap { r =>
        r.getTagValue(DistributeWrites.tag).map(_ -> strategy(r))
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

package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.FailOpen
import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.aqepilot.points.write_distribution.WriteFates
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec

import io.aqepilot.decision.{
  CostEvaluationPoint,
  DynamicJoinSelectionPoint,
  JoinReorderPoint,
  JoinSelectionPoint,
  PartitionCoalescingPoint,
  ShufflePartitionsPoint,
  SkewJoinPoint,
  WriteDistributionPoint
}
import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** Each decision point's reader of fates. */
object Fates extends FateReader {

  private val readers: Seq[(String, FateReader)] =
    Seq(
      JoinReorderPoint.name -> OrderFates,
      WriteDistributionPoint.name -> WriteFates,
      JoinSelectionPoint.name -> SelectionFates,
      ShufflePartitionsPoint.name -> ShuffleFates,
      DynamicJoinSelectionPoint.name -> JoinFates,
      SkewJoinPoint.name -> SkewFates,
      CostEvaluationPoint.name -> CostFates,
      PartitionCoalescingPoint.name -> CoalescingFates
    )

  override def read(finalPlan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate] =
    readers.flatMap { case (point, reader) =>
      val ofPoint = decisions.filter(_.point == point)
      if (ofPoint.isEmpty) Nil
      else FailOpen("fates", Seq.empty[AqePilotFate])(reader.read(finalPlan, ofPoint))
    }

  override def claimed(
      finalPlan: SparkPlan,
      decisions: Seq[AqePilotDecision]
  ): Seq[AqePilotDecision] = {
    val all = nodes(finalPlan)
    val planned =
      all ++ all.collect { case a: AdaptiveSparkPlanExec => a.initialPlan }.flatMap(nodes)
    val joins = planned.flatMap(JoinState.of(_).map(_.id)).toSet
    val shuffles = planned.flatMap(_.getTagValue(SetShufflePartitions.tag)).toSet
    val chains = planned.flatMap(OrderFates.mark(_).map(_._1)).toSet
    decisions.filter { d =>
      d.joinId.exists(joins.contains) || ShuffleFates.id(d).exists(shuffles.contains) ||
      OrderFates.id(d).exists(chains.contains)
    }
  }
}

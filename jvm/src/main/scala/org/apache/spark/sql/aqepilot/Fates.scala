package org.apache.spark.sql.aqepilot

import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.points.cost_evaluation.{CostEvaluationPoint, CostFates}
import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.{
  DynamicJoinSelectionPoint,
  JoinFates
}
import org.apache.spark.sql.aqepilot.points.join_reorder.{JoinReorderPoint, OrderFates}
import org.apache.spark.sql.aqepilot.points.join_selection.{JoinSelectionPoint, SelectionFates}
import org.apache.spark.sql.aqepilot.points.partition_coalescing.{
  CoalescingFates,
  PartitionCoalescingPoint
}
import org.apache.spark.sql.aqepilot.points.shuffle_partitions.{
  SetShufflePartitions,
  ShuffleFates,
  ShufflePartitionsPoint
}
import org.apache.spark.sql.aqepilot.points.skew_join.{SkewFates, SkewJoinPoint}
import org.apache.spark.sql.aqepilot.points.write_distribution.{WriteDistributionPoint, WriteFates}
import org.apache.spark.sql.aqepilot.record.{Decided, FateReader}
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec

import io.aqepilot.log.AqePilotFate

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

  override def read(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] =
    readers.flatMap { case (point, reader) =>
      val ofPoint = decisions.filter(_.event.point == point)
      if (ofPoint.isEmpty) Nil
      else FailOpen("fates", Seq.empty[AqePilotFate])(reader.read(finalPlan, ofPoint))
    }

  override def claimed(
      finalPlan: SparkPlan,
      decisions: Seq[Decided]
  ): Seq[Decided] = {
    val all = nodes(finalPlan)
    val planned =
      all ++ all.collect { case a: AdaptiveSparkPlanExec => a.initialPlan }.flatMap(nodes)
    val joins = planned.flatMap(JoinState.of(_).map(_.id)).toSet
    val shuffles = planned.flatMap(_.getTagValue(SetShufflePartitions.tag)).toSet
    val chains = planned.flatMap(OrderFates.mark(_).map(_._1)).toSet
    decisions.filter { d =>
      d.event.joinId.exists(joins.contains) || ShuffleFates.id(d).exists(shuffles.contains) ||
      OrderFates.id(d).exists(chains.contains)
    }
  }
}

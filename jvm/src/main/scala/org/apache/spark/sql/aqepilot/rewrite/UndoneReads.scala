package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan
}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}

/** Takes back what Spark's rules made of a group's reads: coalescing, local reads and a REBALANCE's splits. The
  * splits of a skewed join stay, on all sides alike.
  */
object UndoneReads {

  /** Each shuffle's id with the node that reads it as before those rules. */
  def of(group: CoalesceGroup): Map[Int, SparkPlan] = {
    val specs = group.reads.map {
      case (_, r: AQEShuffleReadExec) if !r.isLocalRead => Some(r.partitionSpecs)
      case _                                            => None
    }
    val isSplitByJoin = !group.isRebalance && specs.flatten.exists(_.exists(isSplit))
    group.reads.map { case (stage, read) =>
      stage.id -> (read match {
        case r: AQEShuffleReadExec if isSplitByJoin && !r.isLocalRead =>
          r.copy(partitionSpecs = r.partitionSpecs.flatMap(single(stage, _)))
        case _ => stage
      })
    }.toMap
  }

  def isSplit(spec: ShufflePartitionSpec): Boolean = spec.isInstanceOf[PartialReducerPartitionSpec]

  /** A coalesced range as its single reducers; the sides of a join have the same ranges at the same places. */
  private def single(
      stage: ShuffleQueryStageExec,
      spec: ShufflePartitionSpec
  ): Seq[ShufflePartitionSpec] = spec match {
    case c: CoalescedPartitionSpec if c.endReducerIndex - c.startReducerIndex > 1 =>
      (c.startReducerIndex until c.endReducerIndex).map { i =>
        CoalescedPartitionSpec(i, i + 1, stage.mapStats.map(_.bytesByPartitionId(i)))
      }
    case other => Seq(other)
  }
}

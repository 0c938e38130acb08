package org.apache.spark.sql.aqepilot.plans.shuffles

import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan
}

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
          r.copy(partitionSpecs = singles(stage, r.partitionSpecs))
        case _ => stage
      })
    }.toMap
  }

  /** Whether a group's splits are such as Spark's rules make. */
  def canUndo(group: CoalesceGroup): Boolean = group.isRebalance || group.reads.forall {
    case (_, r: AQEShuffleReadExec) if r.partitionSpecs.exists(isSplit) =>
      r.partitionSpecs.forall {
        case _: CoalescedPartitionSpec | _: PartialReducerPartitionSpec => true
        case _                                                          => false
      }
    case _ => true
  }

  def isSplit(spec: ShufflePartitionSpec): Boolean = spec.isInstanceOf[PartialReducerPartitionSpec]

  /** Coalesced ranges as their single reducers, and the parts of split ones as they are; the sides of a join
    * have the same ranges at the same places. Spark's rule leaves out reducers that are empty on all sides, but
    * fails on a read that lacks some: they are put back.
    */
  private def singles(
      stage: ShuffleQueryStageExec,
      specs: Seq[ShufflePartitionSpec]
  ): Seq[ShufflePartitionSpec] = {
    def single(i: Int) =
      CoalescedPartitionSpec(i, i + 1, stage.mapStats.map(_.bytesByPartitionId(i)))
    val read = specs.flatMap {
      case c: CoalescedPartitionSpec if c.endReducerIndex - c.startReducerIndex > 1 =>
        (c.startReducerIndex until c.endReducerIndex).map(i => i -> single(i))
      case c: CoalescedPartitionSpec      => Seq(c.startReducerIndex -> c)
      case p: PartialReducerPartitionSpec => Seq(p.reducerIndex -> p)
      case other => throw new IllegalStateException(s"not a join's read: $other")
    }.groupBy(_._1)
    (0 until stage.shuffle.numPartitions).flatMap { i =>
      read.get(i).fold[Seq[ShufflePartitionSpec]](Seq(single(i)))(_.map(_._2))
    }
  }
}

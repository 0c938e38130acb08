package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.ShuffleFacts
import org.apache.spark.sql.aqepilot.plans.shuffles.CoalesceGroup
import org.apache.spark.sql.aqepilot.spark.ExplodingJoins
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.internal.SQLConf

/** What Spark's own rules went by in a stage. */
final private class SparksValues(groups: Seq[CoalesceGroup], conf: SQLConf, sc: SparkContext) {

  /** The values of a group, in the decision's fields. */
  def of(group: CoalesceGroup): InternalRow = {
    val smallest = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    val advisory = conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)
    val requested =
      if (group.stages.size == 1) group.stages.head.advisoryPartitionSize else None
    val target =
      if (ExplodingJoins.takeMinimumSize && group.hasExplodingJoin) smallest
      else requested.getOrElse(advisory)
    val coalesces = conf.coalesceShufflePartitionsEnabled
    def ifCoalesced(value: Any): Any = if (coalesces) value else null
    new GenericInternalRow(
      Array[Any](
        if (coalesces || group.isRebalance) target else null,
        ifCoalesced(smallest),
        ifCoalesced(minPartitions(group)),
        conf.getConf(SQLConf.LOCAL_SHUFFLE_READER_ENABLED),
        !coalesces
      )
    )
  }

  private def minPartitions(group: CoalesceGroup): Int = {
    val ofStage = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM).getOrElse(
      if (conf.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST))
        sc.defaultParallelism
      else 1
    )
    def bytes(of: Seq[CoalesceGroup]): Long =
      of.flatMap(_.stages).flatMap(_.mapStats).map(ShuffleFacts.of(_).total).sum
    lazy val total = bytes(groups)
    val share =
      if (groups.size == 1 || total == 0) ofStage
      else math.round(ofStage.toDouble * bytes(Seq(group)) / total).toInt
    math.max(1, share)
  }
}

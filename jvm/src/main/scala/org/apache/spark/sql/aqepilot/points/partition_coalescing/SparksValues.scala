package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.plans.shuffles.CoalesceGroup
import org.apache.spark.sql.aqepilot.spark.ExplodingJoins
import org.apache.spark.sql.internal.SQLConf

/** What Spark's own rules went by in a stage. */
final private class SparksValues(stage: StageToRead, conf: SQLConf, sc: SparkContext) {

  /** The values of a group, in a decision's fields. */
  def decision(group: CoalesceGroup): CoalescingDecision = {
    val smallest = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    val advisory = conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)
    val target =
      if (ExplodingJoins.takeMinimumSize && group.hasExplodingJoin) smallest
      else group.requestedBytes.getOrElse(advisory)
    val coalesces = conf.coalesceShufflePartitionsEnabled
    CoalescingDecision(
      Some(target).filter(_ => coalesces || group.isRebalance),
      Some(smallest).filter(_ => coalesces),
      if (coalesces) Some(minPartitions(group)) else None,
      Some(conf.getConf(SQLConf.LOCAL_SHUFFLE_READER_ENABLED)),
      Some(!coalesces)
    )
  }

  private def minPartitions(group: CoalesceGroup): Int = {
    val ofStage = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM).getOrElse(
      if (conf.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST))
        sc.defaultParallelism
      else 1
    )
    val share =
      if (stage.groups.size == 1 || stage.shuffleBytes == 0) ofStage
      else math.round(ofStage.toDouble * group.shuffleBytes / stage.shuffleBytes).toInt
    math.max(1, share)
  }
}

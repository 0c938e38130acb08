package org.apache.spark.sql.aqepilot.points.skew_join

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.plans.joins.StageShuffle
import org.apache.spark.sql.execution.adaptive.ShufflePartitionsUtil
import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec
}

/** Cuts partitions of a finished shuffle into parts, each of which is some map tasks' output in a row. */
private object PartitionParts {

  /** One part for each task; a single one, the whole partition, where it is not to be split or cannot be. */
  def of(
      shuffle: StageShuffle,
      partition: Int,
      splits: Option[SideSplits]
  ): Seq[ShufflePartitionSpec] = {
    val whole =
      CoalescedPartitionSpec(
        partition,
        partition + 1,
        Some(shuffle.stats.bytesByPartitionId(partition))
      )
    splits.flatMap(parts(shuffle.stats.shuffleId, partition, _)).getOrElse(Seq(whole))
  }

  /** Whether a single map task wrote all of a partition. */
  def isOneMappers(shuffle: StageShuffle, partition: Int): Boolean =
    finest(shuffle.stats.shuffleId, partition).count(_.dataSize > 0) < 2

  private def parts(
      shuffleId: Int,
      partition: Int,
      splits: SideSplits
  ): Option[Seq[PartialReducerPartitionSpec]] = {
    val wanted = splits.wanted(partition)
    if (wanted < 2) None
    else if (splits.exact.isDefined) grouped(finest(shuffleId, partition), wanted)
    else
      ShufflePartitionsUtil.createSkewPartitionSpecs(shuffleId, partition, splits.target).flatMap {
        parts =>
          val most = splits.capped(parts.length.toLong)
          if (parts.length <= most) Some(parts.toSeq)
          else grouped(finest(shuffleId, partition), most)
      }
  }

  /** A part for each map task that wrote something; empty when there is only one. */
  private def finest(shuffleId: Int, partition: Int): Seq[PartialReducerPartitionSpec] =
    ShufflePartitionsUtil.createSkewPartitionSpecs(shuffleId, partition, 1L).toSeq.flatten

  private def grouped(
      pieces: Seq[PartialReducerPartitionSpec],
      parts: Long
  ): Option[Seq[PartialReducerPartitionSpec]] = {
    val from = starts(pieces.map(_.dataSize).toArray, parts)
    if (from.length < 2) None
    else
      Some(from.indices.map { i =>
        val group = pieces.slice(from(i), if (i + 1 < from.length) from(i + 1) else pieces.length)
        group.head.copy(endMapIndex = group.last.endMapIndex, dataSize = group.map(_.dataSize).sum)
      })
  }

  /** Where each of so many groups of neighbours begins, of about equal bytes, none of them empty; fewer groups
    * where there are fewer sizes above 0.
    *
    * Worked example: 10, 0, 10, 10, 10 in two parts begin at 0 and 3.
    */
  def starts(sizes: Array[Long], parts: Long): Array[Int] = {
    val total = sizes.sum.toDouble
    var left = sizes.count(_ > 0)
    val groups = math.min(parts, left.toLong).toInt
    val first = mutable.ArrayBuffer(0)
    var before = 0L
    sizes.indices.foreach { i =>
      if (sizes(i) > 0) {
        val share = first.length * total / groups
        val isDue = before + sizes(i) / 2.0 > share || left <= groups - first.length
        if (before > 0 && first.length < groups && isDue) first += i
        left -= 1
        before += sizes(i)
      }
    }
    first.toArray
  }
}

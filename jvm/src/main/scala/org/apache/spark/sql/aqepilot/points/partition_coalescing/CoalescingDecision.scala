package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/** An answer at `partition_coalescing`; None leaves a field to Spark. */
final case class CoalescingDecision(
    targetBytes: Option[Long],
    minPartitionBytes: Option[Long],
    minPartitions: Option[Int],
    localRead: Option[Boolean],
    keep: Option[Boolean]
) {

  /** Whether it says how large the tasks' partitions are to be. */
  def hasSizes: Boolean =
    targetBytes.isDefined || minPartitionBytes.isDefined || minPartitions.isDefined

  def isEmpty: Boolean = !hasSizes && localRead.isEmpty && keep.isEmpty

  /** As the answer of a policy. */
  def row: InternalRow = new GenericInternalRow(
    Array[Any](
      targetBytes.getOrElse(null),
      minPartitionBytes.getOrElse(null),
      minPartitions.getOrElse(null),
      localRead.getOrElse(null),
      keep.getOrElse(null)
    )
  )
}

object CoalescingDecision {

  def of(answer: InternalRow): CoalescingDecision = {
    import PartitionCoalescingPoint.{Keep, LocalRead, MinPartitionBytes, MinPartitions, TargetBytes}
    val row = new FactsRow(PartitionCoalescingPoint.answer, answer)
    CoalescingDecision(
      row.long(TargetBytes),
      row.long(MinPartitionBytes),
      row.long(MinPartitions).map(_.toInt),
      row.boolean(LocalRead),
      row.boolean(Keep)
    )
  }
}

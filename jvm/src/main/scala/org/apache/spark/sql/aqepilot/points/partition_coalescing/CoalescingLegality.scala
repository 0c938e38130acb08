package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.decision.{Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.InternalRow

/** A decision at `partition_coalescing`; None leaves a field to Spark. */
final case class CoalescingAnswer(
    row: InternalRow,
    targetBytes: Option[Long],
    minPartitionBytes: Option[Long],
    minPartitions: Option[Int],
    localRead: Option[Boolean],
    keep: Option[Boolean]
) {

  /** Whether it says anything about coalescing. */
  def sizes: Boolean =
    targetBytes.isDefined || minPartitionBytes.isDefined || minPartitions.isDefined
}

object CoalescingAnswer {

  def of(answer: Any): CoalescingAnswer = {
    val row = answer.asInstanceOf[InternalRow]
    def at[T](name: String)(read: Int => T): Option[T] = {
      val ordinal = PartitionCoalescingPoint.answer.fieldIndex(name)
      if (row.isNullAt(ordinal)) None else Some(read(ordinal))
    }
    CoalescingAnswer(
      row,
      at(PartitionCoalescingPoint.TargetBytes)(row.getLong),
      at(PartitionCoalescingPoint.MinPartitionBytes)(row.getLong),
      at(PartitionCoalescingPoint.MinPartitions)(row.getInt),
      at(PartitionCoalescingPoint.LocalRead)(row.getBoolean),
      at(PartitionCoalescingPoint.Keep)(row.getBoolean)
    )
  }
}

/** Which answers at `partition_coalescing` are sound, from the facts alone. */
object CoalescingLegality {
  import Guards.SmallestTarget
  import PartitionCoalescingPoint._

  def verdict(answer: CoalescingAnswer, facts: FactsRow, guards: Guards): Verdict[Any] = {
    def refused(reason: Reason, detail: String) = Verdict(None, reason, Some(detail))

    val notPositive = Seq(
      TargetBytes -> answer.targetBytes,
      MinPartitionBytes -> answer.minPartitionBytes,
      MinPartitions -> answer.minPartitions.map(_.toLong)
    ).collectFirst { case (field, Some(value)) if value <= 0 => s"$field = $value is not above 0" }

    if (!answer.sizes && answer.localRead.isEmpty && answer.keep.isEmpty) {
      Verdict(None, Reason.NullAnswer)
    } else if (notPositive.isDefined) {
      refused(Reason.OutOfRange, notPositive.get)
    } else if (answer.keep.contains(true) && answer.sizes) {
      refused(
        Reason.Contradiction,
        s"$Keep says not to coalesce: it does not go with $TargetBytes, $MinPartitionBytes or " +
          MinPartitions
      )
    } else if (answer.minPartitions.exists(_ > guards.maxPartitions)) {
      refused(
        Reason.GuardPartitions,
        s"$MinPartitions = ${answer.minPartitions.get} is more than ${limit(guards)}"
      )
    } else {
      answer.targetBytes.fold(Verdict(Some(answer.row), Reason.Applied)) { target =>
        val requested = facts.long("stage.requested_partition_bytes")
        val tasks = splitTasks(target, facts)
        if (target < SmallestTarget)
          refused(
            Reason.GuardTargetBytes,
            s"$TargetBytes = $target is less than $SmallestTarget bytes"
          )
        else if (requested.isDefined)
          refused(
            Reason.SourceSize,
            s"what is written asks for partitions of ${requested.get} bytes"
          )
        else if (tasks.exists(_ > guards.maxPartitions))
          refused(
            Reason.GuardPartitions,
            s"$TargetBytes = $target may split the REBALANCE into ${tasks.get} tasks, more than " +
              limit(guards)
          )
        else Verdict(Some(answer.row), Reason.Applied)
      }
    }
  }

  private def limit(guards: Guards) =
    s"the ${guards.maxPartitions} of spark.aqepilot.guard.max_partitions"

  /** Most tasks that a REBALANCE may be split into: a partition has no more splits than mappers, and any two
    * neighbouring splits hold more than the target.
    *
    * Worked example: 200 partitions written by 50 mappers, 1 GiB in all, and a target of 1 MiB give at most
    * min(200 * 50, 200 + 2 * 1024) = 2248 tasks.
    */
  def splitTasks(target: Long, facts: FactsRow): Option[Long] =
    if (!facts.isTrue("stage.is_rebalance")) None
    else
      for {
        partitions <- facts.long("shuffle.num_partitions")
        mappers <- facts.long("shuffle.num_mappers")
        bytes <- facts.long("shuffle.shuffle_bytes")
      } yield math.min(partitions * math.max(1L, mappers), partitions + 2 * (bytes / target))
}

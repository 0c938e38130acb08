package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.decision.{Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason

/** Which answers at `partition_coalescing` are sound, from the facts alone. */
object CoalescingLegality {
  import Guards.SmallestTarget
  import PartitionCoalescingPoint._

  def verdict(
      decision: CoalescingDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[CoalescingDecision] =
    if (decision.isEmpty) Verdict(None, Reason.NullAnswer)
    else
      notPositive(decision)
        .map(Reason.OutOfRange -> _)
        .orElse(contradiction(decision).map(Reason.Contradiction -> _))
        .orElse(tooManyPartitions(decision, guards).map(Reason.GuardPartitions -> _))
        .orElse(decision.targetBytes.flatMap(refusedTarget(_, facts, guards)))
        .fold(Verdict(Some(decision), Reason.Applied)) { case (reason, detail) =>
          Verdict(None, reason, Some(detail))
        }

  private def notPositive(decision: CoalescingDecision): Option[String] = Seq(
    TargetBytes -> decision.targetBytes,
    MinPartitionBytes -> decision.minPartitionBytes,
    MinPartitions -> decision.minPartitions.map(_.toLong)
  ).collectFirst { case (field, Some(value)) if value <= 0 => s"$field = $value is not above 0" }

  private def contradiction(decision: CoalescingDecision): Option[String] =
    if (decision.keep.contains(true) && decision.hasSizes)
      Some(
        s"$Keep says not to coalesce: it does not go with $TargetBytes, $MinPartitionBytes or " +
          MinPartitions
      )
    else None

  private def tooManyPartitions(decision: CoalescingDecision, guards: Guards): Option[String] =
    decision.minPartitions
      .filter(_ > guards.maxPartitions)
      .map(n => s"$MinPartitions = $n is more than ${limit(guards)}")

  private def refusedTarget(
      target: Long,
      facts: FactsRow,
      guards: Guards
  ): Option[(Reason, String)] = {
    def requested = facts.long("stage.requested_partition_bytes").map { bytes =>
      Reason.SourceSize -> s"what is written asks for partitions of $bytes bytes"
    }
    def splits = splitTasks(target, facts).filter(_ > guards.maxPartitions).map { tasks =>
      Reason.GuardPartitions ->
        s"$TargetBytes = $target may split the REBALANCE into $tasks tasks, more than ${limit(guards)}"
    }
    if (target < SmallestTarget)
      Some(
        Reason.GuardTargetBytes -> s"$TargetBytes = $target is less than $SmallestTarget bytes"
      )
    else requested.orElse(splits)
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

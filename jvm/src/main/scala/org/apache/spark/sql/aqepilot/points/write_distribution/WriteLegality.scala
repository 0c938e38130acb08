package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.decision.{Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason

/** Which answers at `write_distribution` are legal, from the facts alone. */
object WriteLegality {
  import Guards.SmallestTarget
  import WriteDistributionPoint.{Columns, Rebalance, TargetBytes}

  def verdict(decision: WriteDecision, facts: FactsRow, guards: Guards): Verdict[WriteDecision] =
    if (decision.rebalances)
      refusal(decision, facts, guards).fold(Verdict(Some(decision), Reason.Applied)) {
        case (reason, detail) => Verdict(None, reason, Some(detail))
      }
    else if (decision.columns.isDefined || decision.targetBytes.isDefined)
      Verdict(
        None,
        Reason.Contradiction,
        Some(s"$Columns and $TargetBytes go with $Rebalance = true only")
      )
    else if (decision.rebalance.isEmpty) Verdict(None, Reason.NullAnswer)
    else Verdict(Some(decision), Reason.Applied)

  private def refusal(
      decision: WriteDecision,
      facts: FactsRow,
      guards: Guards
  ): Option[(Reason, String)] =
    ofTarget(decision)
      .orElse(ofQuery(facts))
      .orElse(ofWrite(facts))
      .orElse(ofColumns(decision, facts))
      .orElse(openFiles(decision, facts))
      .orElse(tooMany(decision, facts, guards))

  private def ofTarget(decision: WriteDecision): Option[(Reason, String)] =
    decision.targetBytes.collect {
      case n if n <= 0             => (Reason.OutOfRange, s"$TargetBytes = $n is not above 0")
      case n if n < SmallestTarget =>
        (Reason.GuardTargetBytes, s"$TargetBytes = $n is less than $SmallestTarget bytes")
    }

  private def ofQuery(facts: FactsRow): Option[(Reason, String)] = {
    val sorts = Seq("SORT", "SORT_WITHIN_PARTITIONS")
    facts.string("input.user_distribution") match {
      case Some(word) if sorts.contains(word) =>
        Some((Reason.UserSort, s"the query's author has the rows sorted ($word)"))
      case Some("RDD") =>
        Some((
          Reason.UserRepartition,
          "the rows are an RDD's or a checkpoint's, as that has them (RDD)"
        ))
      case Some(word) =>
        Some((Reason.UserRepartition, s"the query's author has the rows distributed ($word)"))
      case None if facts.isTrue("input.is_limited") =>
        Some((Reason.LimitedRows, "the query has a LIMIT, OFFSET or TABLESAMPLE"))
      case None if facts.boolean("input.is_deterministic").contains(false) =>
        Some((Reason.NotDeterministic, "the query has an expression that may give other values"))
      case None => None
    }
  }

  private def ofWrite(facts: FactsRow): Option[(Reason, String)] =
    if (facts.boolean("write.is_adaptive").contains(false))
      Some((Reason.AdaptiveOff, "spark.sql.adaptive.enabled is false"))
    else if (facts.isTrue("write.is_streaming"))
      Some((Reason.StreamingWrite, "a streaming query writes"))
    else if (facts.long("write.num_buckets").isDefined)
      Some((Reason.BucketedTable, s"${facts.long("write.num_buckets").get} buckets"))
    else
      facts.string("write.required_distribution").map { word =>
        (Reason.SourceDistribution, s"the table or the write says how rows are distributed ($word)")
      }.orElse(facts.strings("write.required_ordering").headOption.map { by =>
        (Reason.SourceDistribution, s"the rows of each task have to be sorted by $by")
      }).orElse(facts.strings("write.ambiguous_columns").headOption.map { by =>
        (Reason.AmbiguousPartition, s"the partition column $by")
      })

  private def ofColumns(decision: WriteDecision, facts: FactsRow): Option[(Reason, String)] = {
    val suitable = facts.strings("input.distributing_columns")
    val asked =
      decision.columns.getOrElse(facts.strings("write.dynamic_columns").map(Option(_)))
    asked.collectFirst {
      case None => (Reason.UnsuitableColumn, s"a null in $Columns")
      case Some(column) if WriteDecision.column(column, suitable).isEmpty =>
        val why =
          if (WriteDecision.column(column, facts.strings("write.columns")).isEmpty) "is not written"
          else "is none that rows can be distributed by"
        (Reason.UnsuitableColumn, s"the column $column $why")
    }.orElse(ofTransforms(decision, facts)).orElse {
      if (decision.by(facts).nonEmpty || facts.isTrue("input.spreads_evenly")) None
      else
        Some(
          (
            Reason.NotDeterministic,
            "rows that may differ when a task runs again cannot be spread without columns"
          )
        )
    }
  }

  /** Spread evenly, rows of each partition would come to each task. */
  private def ofTransforms(decision: WriteDecision, facts: FactsRow): Option[(Reason, String)] =
    facts.strings("write.transforms").headOption
      .filter(_ => decision.columns.isEmpty && decision.by(facts).isEmpty)
      .map { by =>
        (
          Reason.UnsuitableColumn,
          s"the table is partitioned by $by, which is no column: name $Columns"
        )
      }

  /** By partition columns alone, a task has as many partitions as if the table had Spark distribute the rows. */
  private def openFiles(decision: WriteDecision, facts: FactsRow): Option[(Reason, String)] = {
    val dynamic = facts.strings("write.dynamic_columns")
    val isOnePartition = facts.strings("write.transforms").isEmpty &&
      dynamic.diff(facts.strings("write.constant_columns")).isEmpty
    val by = decision.by(facts)
    if (!facts.isTrue("write.fans_out") || isOnePartition) None
    else if (by.nonEmpty && by.diff(dynamic).isEmpty) None
    else
      Some((
        Reason.GuardOpenFiles,
        "only by partition columns can rows be distributed: a task has a file open in each partition"
      ))
  }

  private def tooMany(
      decision: WriteDecision,
      facts: FactsRow,
      guards: Guards
  ): Option[(Reason, String)] = for {
    target <- decision.targetBytes
    size <- facts.long("input.size_in_bytes")
    if !facts.string("input.estimate_from").contains("GUESS")
    tasks = size / target
    if tasks > guards.maxPartitions
  } yield (
    Reason.GuardPartitions,
    s"$TargetBytes = $target makes some $tasks tasks of $size bytes, more than the " +
      s"${guards.maxPartitions} of spark.aqepilot.guard.max_partitions"
  )
}

package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.decision.{Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.InternalRow

/** A decision at `write_distribution`.
  *
  * @param columns
  *   None = the dynamic partition columns
  */
final case class WriteAnswer(
    row: InternalRow,
    rebalance: Option[Boolean],
    columns: Option[Seq[Option[String]]],
    targetBytes: Option[Long]
) {

  def rebalances: Boolean = rebalance.contains(true)

  /** The written columns that rows are distributed by, by the names that the write has for them; none = evenly.
    * Those that are the same in all rows are left out, as all rows would come to one task.
    */
  def by(facts: FactsRow): Seq[String] = {
    val named = columns.fold(facts.strings("write.dynamic_columns"))(_.flatten)
      .map(n => WriteAnswer.column(n, facts.strings("input.distributing_columns")).getOrElse(n))
    named.diff(facts.strings("write.constant_columns")).distinct
  }
}

object WriteAnswer {

  def of(answer: Any): WriteAnswer = {
    val row = new FactsRow(WriteDistributionPoint.answer, answer.asInstanceOf[InternalRow])
    val columns =
      if (row.isNull(WriteDistributionPoint.Columns)) None
      else Some(row.optionalStrings(WriteDistributionPoint.Columns))
    WriteAnswer(
      answer.asInstanceOf[InternalRow],
      row.boolean(WriteDistributionPoint.Rebalance),
      columns,
      row.long(WriteDistributionPoint.TargetBytes)
    )
  }

  /** A column by its name, in other cases, too, where that is one only. */
  def column(name: String, of: Seq[String]): Option[String] =
    of.find(_ == name).orElse(of.filter(_.equalsIgnoreCase(name)) match {
      case Seq(one) => Some(one)
      case _        => None
    })
}

/** Which answers at `write_distribution` are legal, from the facts alone. */
object WriteLegality {
  import Guards.SmallestTarget
  import WriteDistributionPoint._

  def verdict(answer: WriteAnswer, facts: FactsRow, guards: Guards): Verdict[Any] =
    if (answer.rebalances)
      refusal(answer, facts, guards).fold(Verdict(Some(answer.row), Reason.Applied)) {
        case (reason, detail) => Verdict(None, reason, Some(detail))
      }
    else if (answer.columns.isDefined || answer.targetBytes.isDefined)
      Verdict(
        None,
        Reason.Contradiction,
        Some(s"$Columns and $TargetBytes go with $Rebalance = true only")
      )
    else if (answer.rebalance.isEmpty) Verdict(None, Reason.NullAnswer)
    else Verdict(Some(answer.row), Reason.Applied)

  private def refusal(
      answer: WriteAnswer,
      facts: FactsRow,
      guards: Guards
  ): Option[(Reason, String)] =
    ofAnswer(answer).orElse(ofQuery(facts)).orElse(ofWrite(facts)).orElse(ofColumns(answer, facts))
      .orElse(openFiles(answer, facts)).orElse(tooMany(answer, facts, guards))

  private def ofAnswer(answer: WriteAnswer): Option[(Reason, String)] =
    answer.targetBytes.collect {
      case n if n <= 0             => (Reason.OutOfRange, s"$TargetBytes = $n is not above 0")
      case n if n < SmallestTarget =>
        (Reason.GuardTargetBytes, s"$TargetBytes = $n is less than $SmallestTarget bytes")
    }

  private def ofQuery(facts: FactsRow): Option[(Reason, String)] = {
    val sorts = Seq("SORT", "SORT_WITHIN_PARTITIONS")
    val said = facts.string("input.user_distribution")
    if (said.exists(sorts.contains))
      Some((Reason.UserSort, s"the query's author has the rows sorted (${said.get})"))
    else if (said.contains("RDD"))
      Some((
        Reason.UserRepartition,
        "the rows are an RDD's or a checkpoint's, as that has them (RDD)"
      ))
    else if (said.isDefined)
      Some((Reason.UserRepartition, s"the query's author has the rows distributed (${said.get})"))
    else if (facts.isTrue("input.is_limited"))
      Some((Reason.LimitedRows, "the query has a LIMIT, OFFSET or TABLESAMPLE"))
    else if (facts.boolean("input.is_deterministic").contains(false))
      Some((Reason.NotDeterministic, "the query has an expression that may give other values"))
    else None
  }

  private def ofWrite(facts: FactsRow): Option[(Reason, String)] =
    if (facts.boolean("write.is_adaptive").contains(false))
      Some((Reason.AdaptiveOff, "spark.sql.adaptive.enabled is false"))
    else if (facts.isTrue("write.is_streaming"))
      Some((Reason.StreamingWrite, "a streaming query writes"))
    else if (facts.long("write.num_buckets").isDefined)
      Some((Reason.BucketedTable, s"${facts.long("write.num_buckets").get} buckets"))
    else
      facts.string("write.required_distribution").map { said =>
        (Reason.SourceDistribution, s"the table or the write says how rows are distributed ($said)")
      }.orElse(facts.strings("write.required_ordering").headOption.map { by =>
        (Reason.SourceDistribution, s"the rows of each task have to be sorted by $by")
      }).orElse(facts.strings("write.ambiguous_columns").headOption.map { by =>
        (Reason.AmbiguousPartition, s"the partition column $by")
      })

  private def ofColumns(answer: WriteAnswer, facts: FactsRow): Option[(Reason, String)] = {
    val suitable = facts.strings("input.distributing_columns")
    val asked =
      answer.columns.getOrElse(facts.strings("write.dynamic_columns").map(Option(_)))
    asked.collectFirst {
      case None => (Reason.UnsuitableColumn, s"a null in $Columns")
      case Some(column) if WriteAnswer.column(column, suitable).isEmpty =>
        val why =
          if (WriteAnswer.column(column, facts.strings("write.columns")).isEmpty) "is not written"
          else "is none that rows can be distributed by"
        (Reason.UnsuitableColumn, s"the column $column $why")
    }.orElse(ofTransforms(answer, facts)).orElse {
      if (answer.by(facts).nonEmpty || facts.isTrue("input.spreads_evenly")) None
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
  private def ofTransforms(answer: WriteAnswer, facts: FactsRow): Option[(Reason, String)] =
    facts.strings("write.transforms").headOption
      .filter(_ => answer.columns.isEmpty && answer.by(facts).isEmpty)
      .map { by =>
        (
          Reason.UnsuitableColumn,
          s"the table is partitioned by $by, which is no column: name $Columns"
        )
      }

  /** By partition columns alone, a task has as many partitions as if the table had Spark distribute the rows. */
  private def openFiles(answer: WriteAnswer, facts: FactsRow): Option[(Reason, String)] = {
    val dynamic = facts.strings("write.dynamic_columns")
    val isOnePartition = facts.strings("write.transforms").isEmpty &&
      dynamic.diff(facts.strings("write.constant_columns")).isEmpty
    val by = answer.by(facts)
    if (!facts.isTrue("write.fans_out") || isOnePartition) None
    else if (by.nonEmpty && by.diff(dynamic).isEmpty) None
    else
      Some((
        Reason.GuardOpenFiles,
        "only by partition columns can rows be distributed: a task has a file open in each partition"
      ))
  }

  private def tooMany(
      answer: WriteAnswer,
      facts: FactsRow,
      guards: Guards
  ): Option[(Reason, String)] = for {
    target <- answer.targetBytes
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

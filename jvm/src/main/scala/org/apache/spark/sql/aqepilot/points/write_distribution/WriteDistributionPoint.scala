package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.decision.{
  AnswerField,
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Whether the rows of a write are shuffled once more before they are written, and by what.
  *
  * Spark has no rule of its own here: each task of the query's last stage writes what it has.
  */
object WriteDistributionPoint extends DecisionPoint[WriteDecision] {

  override val name: String = "write_distribution"

  override val builtIn: String = "none: each task of the query's last stage writes the rows it has"

  override val summary: String = "how rows are distributed before they are written to files"

  override val asked: String =
    "when a query is optimised, once for each command that writes files: INSERT, CREATE TABLE AS SELECT, " +
      "INSERT OVERWRITE DIRECTORY, and DataFrame.write; when it is planned, for each write to a table of the " +
      "DataSource V2 interface that says what it requires of the rows"

  val Rebalance = "rebalance"
  val Columns = "columns"
  val TargetBytes = "target_bytes"

  override val answer: StructType = StructType(
    Seq(
      AnswerField.bare(
        AnswerField(
          Rebalance,
          BooleanType,
          "true = the rows are shuffled before they are written, as by the hint REBALANCE: AQE merges small " +
            "partitions and splits large ones; false = they are written as they are"
        )
      ),
      AnswerField(
        Columns,
        ArrayType(StringType),
        "written columns to shuffle by, so that equal values come to few tasks; an empty array spreads the rows " +
          "evenly; null = the dynamic partition columns"
      ),
      AnswerField(
        TargetBytes,
        LongType,
        "size that a task should write, shuffle bytes; null = spark.sql.adaptive.advisoryPartitionSizeInBytes"
      )
    )
  )

  override val answerMeaning: String =
    "how to distribute the rows; rebalance may stand alone, as true or false"

  override val facts: StructType = WriteFacts.all.schema

  override def parse(answer: Any): WriteDecision = {
    val row = new FactsRow(this.answer, answer.asInstanceOf[InternalRow])
    WriteDecision(
      row.boolean(Rebalance),
      if (row.isNull(Columns)) None else Some(row.optionalStrings(Columns)),
      row.long(TargetBytes)
    )
  }

  override def toAnswer(decision: WriteDecision): Any = {
    def array(names: Seq[Option[String]]) =
      new GenericArrayData(names.map(_.map(UTF8String.fromString).orNull).toArray[Any])
    new GenericInternalRow(
      Array[Any](
        decision.rebalance.getOrElse(null),
        decision.columns.map(array).orNull,
        decision.targetBytes.getOrElse(null)
      )
    )
  }

  override def judge(
      decision: WriteDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[WriteDecision] = WriteLegality.verdict(decision, facts, guards)

  override def candidates(facts: FactsRow): Iterator[WriteDecision] = {
    val advisory = facts.long("conf.advisory_partition_size_in_bytes")
    val columns = facts.strings("input.distributing_columns").map(c => Seq(Option(c)))
    val rebalanced = for {
      target <- Iterator(None) ++ advisory.iterator.flatMap(n => Iterator(Some(n / 4), Some(n * 4)))
      by <- Iterator(None, Some(Nil)) ++ columns.iterator.map(Some(_))
    } yield WriteDecision(Some(true), by, target)
    Iterator.single(WriteDecision(Some(false), None, None)) ++ rebalanced
  }

  override def fates: FateReader = WriteFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.SparkSessionExtensions", Some("injectPreCBORule")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("partitionColumns")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("staticPartitions")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("bucketSpec")),
    Need("org.apache.spark.sql.execution.datasources.V1WriteCommand", Some("requiredOrdering")),
    Need(
      "org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions",
      Some("optAdvisoryPartitionSize")
    )
  )
}

package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import org.apache.spark.sql.aqepilot.facts.OldFacts
import org.apache.spark.sql.aqepilot.decision.{
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  SparkFault,
  SparkFaults,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.OldFacts.{fact, group}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.types._

/** How many partitions new shuffles get, asked per group of shuffles that must have as many.
  *
  * Stands beside `spark.sql.adaptive.coalescePartitions.initialPartitionNum` and
  * `spark.sql.shuffle.partitions`.
  */
object ShufflePartitionsPoint extends DecisionPoint[Any] {

  override val name: String = "shuffle_partitions"

  override val builtIn: String =
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum, spark.sql.shuffle.partitions"

  override val summary: String = "the number of partitions of shuffles that Spark adds to a query"

  override val asked: String =
    "for each group of shuffles that must have as many partitions, at the first planning and, until " +
      "they start, at re-plans that know more of them"

  override val facts: StructType = StructType(
    CommonFacts.fields ++ Seq(
      group(
        "shuffles",
        "the group of shuffles",
        fact("num_shuffles", IntegerType, "shuffles in the group"),
        fact("num_partitions", IntegerType, "Spark's number of partitions"),
        fact("partitioning", StringType, "HASH, or RANGE for a global sort"),
        fact("keys", ArrayType(StringType), "what the first shuffle partitions by, as SQL"),
        fact("key_count", IntegerType, "number of keys"),
        fact(
          "distinct_count",
          LongType,
          "distinct values of the key, the largest of all shuffles (column statistics); null when not " +
            "known and for several keys"
        ),
        fact(
          "size_in_bytes",
          LongType,
          "Spark's estimate of what all of them carry, uncompressed bytes; above a join without " +
            "statistics the product of its sides; null when Spark has none"
        ),
        fact("max_size_in_bytes", LongType, "the same of the largest of them"),
        fact(
          "row_count",
          LongType,
          "Spark's estimate of the rows in all of them; null when it has none"
        ),
        fact(
          "input_bytes",
          LongType,
          "the sum of the estimates of tables and of the measured finished stages beneath, columns that " +
            "are not read left out, bytes; tables count as they are stored, often compressed"
        ),
        fact(
          "known_bytes",
          LongType,
          "uncompressed bytes of the finished stages beneath; null when there are none"
        ),
        OldFacts.tables,
        fact(
          "feeds",
          ArrayType(StringType),
          "what the stage that reads them does, sorted: AGGREGATE, EXPAND, GENERATE, " +
            "GROUPED_UDF (a function for each group, as in applyInPandas), JOIN, LIMIT, PYTHON, SORT (global), UNION, " +
            "WINDOW, WRITE"
        ),
        OldFacts.sparkFaults(
          "a join that Spark may make a shuffled hash join by the size of partitions"
        )
      )
    )
  )

  override val answer: DataType = IntegerType

  override val answerMeaning: String = "the number of partitions, for each shuffle of the group"

  override def parse(answer: Any): Any = answer

  override def toAnswer(decision: Any): Any = decision

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] = {
    val number = answer.asInstanceOf[Int]
    if (number <= 0)
      Verdict(None, Reason.OutOfRange, Some(s"$number partitions: there must be at least 1"))
    else if (number > guards.maxPartitions)
      Verdict(
        None,
        Reason.GuardPartitions,
        Some(s"$number partitions, the guard allows ${guards.maxPartitions}")
      )
    else
      SparkFaults
        .refusal(name, "shuffles.spark_faults", Seq(SparkFault.Any), facts)
        .fold(Verdict(Some(answer), Reason.Applied)) { case (reason, detail) =>
          Verdict(None, reason, Some(detail))
        }
  }

  override val movesRows: Boolean = true

  override def fates: FateReader = ShuffleFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.exchange.ShuffleExchangeExec", Some("shuffleOrigin")),
    Need("org.apache.spark.sql.execution.exchange.ValidateRequirements", Some("validate")),
    Need("org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec", Some("shuffle")),
    Need("org.apache.spark.sql.execution.adaptive.AQEUtils", Some("getRequiredDistribution"))
  ) ++ Need.ofRequiredDistribution
}

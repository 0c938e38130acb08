package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import org.apache.spark.sql.aqepilot.decision.{
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  SparkFault,
  SparkFaults,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.types._

/** How many partitions new shuffles get, asked per group of shuffles that must have as many.
  *
  * Stands beside `spark.sql.adaptive.coalescePartitions.initialPartitionNum` and
  * `spark.sql.shuffle.partitions`.
  */
object ShufflePartitionsPoint extends DecisionPoint[Int] {

  override val name: String = "shuffle_partitions"

  override val builtIn: String =
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum, spark.sql.shuffle.partitions"

  override val summary: String = "the number of partitions of shuffles that Spark adds to a query"

  override val asked: String =
    "for each group of shuffles that must have as many partitions, at the first planning and, until " +
      "they start, at re-plans that know more of them"

  override val facts: StructType = ShuffleGroupFacts.all.schema

  override val answer: DataType = IntegerType

  override val answerMeaning: String = "the number of partitions, for each shuffle of the group"

  override def parse(answer: Any): Int = answer.asInstanceOf[Int]

  override def toAnswer(decision: Int): Any = decision

  override def judge(number: Int, facts: FactsRow, guards: Guards): Verdict[Int] =
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
        .fold(Verdict(Some(number), Reason.Applied)) { case (reason, detail) =>
          Verdict(None, reason, Some(detail))
        }

  override def candidates(facts: FactsRow): Iterator[Int] = {
    val spark = facts.long("shuffles.num_partitions").getOrElse(1L)
    val cores = facts.long("cluster.default_parallelism").getOrElse(1L)
    val numbers = Seq(cores, 2 * cores, 4 * cores) ++
      Seq(0.5, 2.0, 0.25, 4.0, 0.125, 8.0, 1.0).map(times => (spark * times).toLong)
    numbers.iterator.filter(n => n > 0 && n <= Int.MaxValue).map(_.toInt)
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

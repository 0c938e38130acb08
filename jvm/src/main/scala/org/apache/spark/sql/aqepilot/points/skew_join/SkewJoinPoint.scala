package org.apache.spark.sql.aqepilot.points.skew_join

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
import org.apache.spark.sql.types._

/** Which partitions of a join's shuffles are read by several tasks, and by how many.
  *
  * Stands beside Spark's `OptimizeSkewedJoin` (`spark.sql.adaptive.skewJoin.*`).
  */
object SkewJoinPoint extends DecisionPoint[SkewDecision] {

  override val name: String = "skew_join"

  override val builtIn: String = "OptimizeSkewedJoin"

  override val summary: String =
    "how the large partitions of a join are split, so that several tasks share them"

  override val asked: String =
    "for each sort-merge, shuffled hash or broadcast hash join that reads a shuffle directly, once all " +
      "shuffles and broadcasts of its stage have run, and again when a fact has changed"

  override val facts: StructType = SkewFacts.all.schema

  override val answer: StructType = StructType(
    Seq(
      AnswerField(
        "skew_factor",
        DoubleType,
        "a partition is skewed if it is larger than this many medians of its side and than the side's " +
          "threshold; null = spark.sql.adaptive.skewJoin.skewedPartitionFactor"
      ),
      AnswerField(
        "left_threshold_bytes",
        LongType,
        "bytes above which a left partition can be skewed; null = " +
          "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
      ),
      AnswerField("right_threshold_bytes", LongType, "the same for the right side"),
      AnswerField(
        "left_target_bytes",
        LongType,
        "bytes of the parts that a skewed left partition is split into; null = the mean of those that " +
          "are not skewed, at least spark.sql.adaptive.advisoryPartitionSizeInBytes"
      ),
      AnswerField("right_target_bytes", LongType, "the same for the right side"),
      AnswerField("max_splits", IntegerType, "most parts of one partition; null = no such bound"),
      AnswerField(
        "force",
        BooleanType,
        "whether to split even if that takes a further shuffle, which AQE's cost evaluator must let " +
          "pass; null = spark.sql.adaptive.forceOptimizeSkewedJoin"
      ),
      AnswerField(
        "left_splits",
        ArrayType(IntegerType),
        "into how many parts to split each left partition, by partition id; 1 or null = not at all. " +
          "Replaces factor, threshold and target of this side"
      ),
      AnswerField("right_splits", ArrayType(IntegerType), "the same for the right side")
    )
  )

  override val answerMeaning: String =
    "how to split; a field that is null keeps Spark's value, an answer that is null keeps Spark's plan"

  override def parse(answer: Any): SkewDecision =
    SkewDecision.of(answer.asInstanceOf[InternalRow])

  override def toAnswer(decision: SkewDecision): Any = decision.row

  override def judge(
      decision: SkewDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[SkewDecision] = SkewLegality.verdict(decision, facts, guards)

  override def candidates(facts: FactsRow): Iterator[SkewDecision] = SplitsToTry.of(facts)

  override val movesRows: Boolean = true

  override def fates: FateReader = SkewFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec", Some("mapStats")),
    Need("org.apache.spark.MapOutputStatistics", Some("bytesByPartitionId")),
    Need("org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec", Some("partitionSpecs")),
    // With the signature that is called: a vendor has changed it.
    Need(
      "org.apache.spark.sql.execution.adaptive.ShufflePartitionsUtil",
      Some("createSkewPartitionSpecs")
    ),
    Need(
      "org.apache.spark.sql.execution.adaptive.ShufflePartitionsUtil",
      Some("createSkewPartitionSpecs$default$4")
    ),
    Need("org.apache.spark.sql.execution.PartialReducerPartitionSpec", Some("startMapIndex")),
    Need("org.apache.spark.sql.execution.joins.SortMergeJoinExec", Some("isSkewJoin")),
    Need("org.apache.spark.sql.execution.joins.ShuffledHashJoinExec", Some("isSkewJoin")),
    Need("org.apache.spark.sql.execution.exchange.ValidateRequirements", Some("validate"))
  ) ++ Need.ofRequiredDistribution
}

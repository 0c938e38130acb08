package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, Guards, Need, Verdict}
import org.apache.spark.sql.aqepilot.facts.CommonFacts.{fact, group}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

/** Which partitions of a join's shuffles are read by several tasks, and by how many.
  *
  * Stands beside Spark's `OptimizeSkewedJoin` (`spark.sql.adaptive.skewJoin.*`).
  */
object SkewJoinPoint extends DecisionPoint {

  override val name: String = "skew_join"

  override val builtIn: String = "OptimizeSkewedJoin"

  override val summary: String =
    "how the large partitions of a join are split, so that several tasks share them"

  override val asked: String =
    "for each sort-merge, shuffled hash or broadcast hash join that reads a shuffle directly, once all " +
      "shuffles and broadcasts of its stage have run, and again when a fact has changed"

  private def sideFields: Seq[StructField] = Seq(
    CommonFacts.tables,
    fact("num_partitions", IntegerType, "partitions of the shuffle"),
    fact(
      "num_mappers",
      IntegerType,
      "map tasks that wrote the shuffle: a partition has no more parts than these"
    )
  ) ++ CommonFacts.sizesOfOne ++ Seq(
    fact("p90_bytes", LongType, "90th percentile of bytes_by_partition_id (nearest rank)"),
    fact("p99_bytes", LongType, "99th percentile of bytes_by_partition_id (nearest rank)"),
    fact("non_empty_ratio", DoubleType, "share of the partitions that are not empty, 0 to 1"),
    fact(
      "can_split",
      BooleanType,
      "whether the join types up to the stage's topmost join let this side's partitions be split"
    )
  )

  override val facts: StructType = StructType(
    Seq(
      CommonFacts.query,
      CommonFacts.conf,
      CommonFacts.cluster,
      group(
        "join",
        "the join",
        fact("id", LongType, "stable for the life of the query, unique in the driver"),
        CommonFacts.joinType,
        fact(
          "strategy",
          StringType,
          "SortMergeJoin, or ShuffledHashJoin or BroadcastHashJoin with BuildLeft or BuildRight"
        ),
        fact("key_count", IntegerType, "number of equality keys"),
        fact("has_condition", BooleanType, "whether there is a condition beside the equality keys"),
        fact(
          "shuffles",
          IntegerType,
          "shuffles that the joins of this stage read together; Spark's own rule splits where it is 2, and " +
            "from 4.2 on where a broadcast join's streamed side is the only one"
        ),
        fact(
          "is_read_locally",
          BooleanType,
          "whether Spark will read a broadcast join's streamed side where it was written, each task some of " +
            "one map task's output (spark.sql.adaptive.localShuffleReader.enabled): no partition is one task's"
        )
      ),
      group(
        "left",
        "the shuffle that is the join's left side; null facts when another join or a broadcast is",
        sideFields: _*
      ),
      group(
        "right",
        "the shuffle that is the join's right side; null facts when another join or a broadcast is",
        sideFields: _*
      ),
      group(
        "spark",
        "what Spark's own rule has made of this join",
        fact("left_skewed_partitions", IntegerType, "partitions of the left side that it splits"),
        fact("right_skewed_partitions", IntegerType, "partitions of the right side that it splits"),
        fact("tasks", IntegerType, "tasks that read the join's shuffles, before any coalescing")
      )
    )
  )

  override val answer: StructType = StructType(
    Seq(
      fact(
        "skew_factor",
        DoubleType,
        "a partition is skewed if it is larger than this many medians of its side and than the side's " +
          "threshold; null = spark.sql.adaptive.skewJoin.skewedPartitionFactor"
      ),
      fact(
        "left_threshold_bytes",
        LongType,
        "bytes above which a left partition can be skewed; null = " +
          "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
      ),
      fact("right_threshold_bytes", LongType, "the same for the right side"),
      fact(
        "left_target_bytes",
        LongType,
        "bytes of the parts that a skewed left partition is split into; null = the mean of those that " +
          "are not skewed, at least spark.sql.adaptive.advisoryPartitionSizeInBytes"
      ),
      fact("right_target_bytes", LongType, "the same for the right side"),
      fact("max_splits", IntegerType, "most parts of one partition; null = no such bound"),
      fact(
        "force",
        BooleanType,
        "whether to split even if that takes a further shuffle, which AQE's cost evaluator must let " +
          "pass; null = spark.sql.adaptive.forceOptimizeSkewedJoin"
      ),
      fact(
        "left_splits",
        ArrayType(IntegerType),
        "into how many parts to split each left partition, by partition id; 1 or null = not at all. " +
          "Replaces factor, threshold and target of this side"
      ),
      fact("right_splits", ArrayType(IntegerType), "the same for the right side")
    )
  )

  override val answerMeaning: String =
    "how to split; a field that is null keeps Spark's value, an answer that is null keeps Spark's plan"

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict =
    SkewLegality.verdict(answer.asInstanceOf[InternalRow], facts, guards)

  override val movesRows: Boolean = true

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

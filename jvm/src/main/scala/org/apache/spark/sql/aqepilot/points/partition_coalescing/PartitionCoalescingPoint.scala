package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.facts.OldFacts
import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, FateReader, Guards, Need, Verdict}
import org.apache.spark.sql.aqepilot.facts.OldFacts.{fact, group}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow}
import org.apache.spark.sql.types._

/** How many tasks read the finished shuffles of a stage, and how.
  *
  * Stands beside Spark's `CoalesceShufflePartitions`, `OptimizeShuffleWithLocalRead` and
  * `OptimizeSkewInRebalancePartitions`.
  */
object PartitionCoalescingPoint extends DecisionPoint[Any] {

  override val name: String = "partition_coalescing"

  override val builtIn: String =
    "CoalesceShufflePartitions, OptimizeShuffleWithLocalRead, OptimizeSkewInRebalancePartitions"

  override val summary: String =
    "how many tasks read finished shuffles, from the measured sizes of their partitions"

  override val asked: String =
    "once per stage for each group of finished shuffles that its tasks read together, right before it " +
      "is run; not for shuffles whose number of partitions the query fixes"

  val TargetBytes = "target_bytes"
  val MinPartitionBytes = "min_partition_bytes"
  val MinPartitions = "min_partitions"
  val LocalRead = "local_read"
  val Keep = "keep"

  override val answer: StructType = StructType(
    Seq(
      fact(
        TargetBytes,
        LongType,
        "size that a task should read, shuffle bytes; of a REBALANCE also the size above which a " +
          "partition is split (spark.sql.adaptive.advisoryPartitionSizeInBytes)"
      ),
      fact(
        MinPartitionBytes,
        LongType,
        "smallest size of the target after Spark has lowered it for parallelism, shuffle bytes " +
          "(spark.sql.adaptive.coalescePartitions.minPartitionSize)"
      ),
      fact(
        MinPartitions,
        IntegerType,
        "number of tasks below which the target is lowered; 1 = the target alone rules " +
          "(spark.sql.adaptive.coalescePartitions.minPartitionNum)"
      ),
      fact(
        LocalRead,
        BooleanType,
        "whether shuffles that need no particular partitioning are read where they were written " +
          "(spark.sql.adaptive.localShuffleReader.enabled)"
      ),
      fact(
        Keep,
        BooleanType,
        "true = no coalescing, the shuffles' own partitions; false = coalescing even where the " +
          "session has it off (spark.sql.adaptive.coalescePartitions.enabled)"
      )
    )
  )

  override val answerMeaning: String =
    "the values of Spark's own settings for this group of shuffles"

  private def shuffleFields: Seq[StructField] = Seq(
    OldFacts.tables,
    fact("num_partitions", IntegerType, "partitions of each shuffle"),
    fact("num_mappers", IntegerType, "map tasks that wrote the shuffles, all together")
  ) ++ OldFacts.sizes(
    "shuffle bytes (compressed) of each partition, summed over the shuffles"
  ) ++ Seq(
    fact("non_empty_ratio", DoubleType, "share of the partitions that are not empty, 0 to 1"),
    fact("row_count", LongType, "rows; null when not known"),
    fact("size_in_bytes", LongType, "rows' size, uncompressed, bytes")
  )

  override val facts: StructType = StructType(
    CommonFacts.fields ++ Seq(
      group(
        "stage",
        "the stage that reads the group",
        fact(
          "shuffles",
          ArrayType(IntegerType),
          "the group's shuffles, numbered as in the plan's text (ShuffleQueryStage 3)"
        ),
        fact("num_shuffles", IntegerType, "shuffles in the group"),
        fact(
          "is_final",
          BooleanType,
          "whether the stage gives the query's, or a subquery's, result"
        ),
        fact("is_rebalance", BooleanType, "whether the group is a REBALANCE"),
        fact("has_sort", BooleanType, "whether a sort runs above the group in the stage"),
        fact("has_aggregate", BooleanType, "whether an aggregation does"),
        fact("has_join", BooleanType, "whether a join does"),
        fact("has_window", BooleanType, "whether a window function does"),
        fact("has_generate", BooleanType, "whether an explode or another generator does"),
        fact("has_python_udf", BooleanType, "whether Python code does (UDF, mapInPandas, ...)"),
        fact(
          "has_jvm_udf",
          BooleanType,
          "whether JVM code that is not Spark's does: a Scala, Java or Hive UDF, a function of a library, an " +
            "operation on the objects of a Dataset"
        ),
        fact(
          "has_grouped_udf",
          BooleanType,
          "whether a function does that is called once for each group (applyInPandas, cogroup, mapGroups, UDFs in " +
            "pandas that aggregate)"
        ),
        fact(
          "has_loop",
          BooleanType,
          "whether an expression does whose steps for a row do not follow from the row's bytes: sequence, array_repeat, " +
            "a lambda over a constant array or within another lambda"
        ),
        fact(
          "has_exploding_join",
          BooleanType,
          "whether a Cartesian product or a broadcast nested loop join does: from 4.0 on Spark then " +
            "takes the minimum size for the target"
        ),
        fact("is_write", BooleanType, "whether the stage writes a table or files"),
        fact(
          "write_format",
          StringType,
          "format that it writes, e.g. parquet; null when not known"
        ),
        fact(
          "requested_partition_bytes",
          LongType,
          "size that the data source that is written to asks for, or a `write_distribution` policy, bytes; null when none does"
        ),
        fact(
          "shuffle_bytes",
          LongType,
          "shuffle bytes of all groups of the stage: Spark shares its minimum number among them"
        )
      ),
      group("shuffle", "the group's shuffles, taken together", shuffleFields: _*),
      group(
        "spark",
        "what Spark's own rules made of the group",
        fact("num_partitions", IntegerType, "tasks that would read it"),
        fact("is_local_read", BooleanType, "whether they would read it where it was written")
      )
    )
  )

  override def parse(answer: Any): Any = answer

  override def toAnswer(decision: Any): Any = decision

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] =
    CoalescingLegality.verdict(CoalescingAnswer.of(answer), facts, guards)

  override val movesRows: Boolean = true

  override def fates: FateReader = CoalescingFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.CoalesceShufflePartitions", Some("conf")),
    Need("org.apache.spark.sql.execution.adaptive.OptimizeShuffleWithLocalRead"),
    Need("org.apache.spark.sql.execution.adaptive.OptimizeSkewInRebalancePartitions"),
    Need("org.apache.spark.sql.execution.adaptive.AQEShuffleReadRule"),
    Need("org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec", Some("partitionSpecs")),
    Need("org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec", Some("mapStats")),
    Need("org.apache.spark.MapOutputStatistics", Some("bytesByPartitionId")),
    Need("org.apache.spark.sql.execution.exchange.ValidateRequirements", Some("validate"))
  ) ++ Need.ofRequiredDistribution
}

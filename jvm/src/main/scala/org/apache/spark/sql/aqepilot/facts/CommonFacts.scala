package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.aqepilot.settings.RunIdentity
import org.apache.spark.sql.types._

/** Schema of the facts that every decision point has. Null always means that Spark does not know. */
object CommonFacts {

  private[aqepilot] def fact(name: String, dataType: DataType, meaning: String): StructField =
    StructField(name, dataType, nullable = true).withComment(meaning)

  private val Bare = "aqepilot.bare"

  /** Marks the field of a struct that an answer may give without the struct around it. */
  private[aqepilot] def bare(field: StructField): StructField = field.copy(metadata =
    new MetadataBuilder().withMetadata(field.metadata).putBoolean(Bare, true).build()
  )

  def bareField(answer: DataType): Option[StructField] = answer match {
    case struct: StructType => struct.find(_.metadata.contains(Bare))
    case _                  => None
  }

  private[aqepilot] def group(name: String, meaning: String, fields: StructField*): StructField =
    fact(name, StructType(fields), meaning)

  private[aqepilot] val tables: StructField =
    fact("tables", ArrayType(StringType), "names of the tables or files beneath, in plan order")

  private[aqepilot] val rowBytes: StructField = fact(
    "row_bytes",
    LongType,
    "Spark's estimate of one row's size, by its columns' types, bytes (EstimationUtils.getSizePerRow)"
  )

  private[aqepilot] val joinType: StructField = fact(
    "type",
    StringType,
    "INNER, CROSS, LEFT OUTER, RIGHT OUTER, FULL OUTER, LEFT SEMI, LEFT ANTI or EXISTENCE"
  )

  private[aqepilot] val conditionCanThrow: StructField = fact(
    "condition_can_throw",
    BooleanType,
    "whether that condition could throw for some rows, by a division under ANSI, say"
  )

  /** @param what
    *   a plan of what could meet them
    */
  private[aqepilot] def sparkFaults(what: String): StructField = fact(
    "spark_faults",
    ArrayType(StringType),
    s"numbers of those faults of the running Spark release that a changed plan of $what could meet: SPARK_FAULT " +
      "refuses the answers that lead there"
  )

  private[aqepilot] val prunes: StructField = fact(
    "prunes",
    BooleanType,
    "whether Spark's own plan broadcasts this side, and reads only those partitions of the other side's tables " +
      "for which the broadcast has rows (dynamic partition pruning)"
  )

  private[aqepilot] val isInPruningSide: StructField = fact(
    "is_in_pruning_side",
    BooleanType,
    "whether the join is part of a side that prunes so: Spark plans such a side twice, and prunes only where " +
      "both plans are alike"
  )

  /** The sizes of finished shuffles' partitions.
    *
    * @param ofEach
    *   what the size of one partition is
    */
  private[aqepilot] def sizes(ofEach: String): Seq[StructField] = Seq(
    fact("bytes_by_partition_id", ArrayType(LongType), ofEach),
    fact(
      "bytes_are_exact",
      BooleanType,
      "false above spark.shuffle.minNumPartitionsToHighlyCompress partitions, where Spark reports " +
        "averages for small blocks"
    ),
    fact("shuffle_bytes", LongType, "sum of bytes_by_partition_id"),
    fact("max_bytes", LongType, "largest of bytes_by_partition_id"),
    fact("median_bytes", LongType, "median of bytes_by_partition_id, at least 1 (Utils.median)")
  )

  private[aqepilot] val sizesOfOne: Seq[StructField] =
    sizes("shuffle bytes (compressed) of each partition, as MapOutputStatistics has them")

  private def sourceOf(what: String, sources: Seq[String]): String =
    s"where $what is from: ${sources.mkString(", ")}"

  private val sourcesOfJobs = RunIdentity.Sources.map(_._1)

  val query: StructField = group(
    "query",
    "the query that is being planned",
    fact("execution_id", LongType, "Spark's SQL execution id; null outside an execution (df.rdd)"),
    fact(
      "fingerprint",
      StringType,
      "SHA-256 of the analysed plan without literals: the same recurring query has the same " +
        "fingerprint on any day and driver; null outside an execution"
    ),
    fact("description", StringType, "the job description (SparkContext.setJobDescription)"),
    fact("app_name", StringType, "spark.app.name"),
    fact("app_id", StringType, "the application's id"),
    fact("user", StringType, "the user that runs the application"),
    fact("tags", ArrayType(StringType), "job tags (SparkContext.addJobTag), sorted"),
    fact("job", StringType, "the job that runs, the same name on each day"),
    fact("job_source", StringType, sourceOf("its name", sourcesOfJobs)),
    fact("run", StringType, "the run of the job, the same when its scheduler tries it again"),
    fact("run_source", StringType, sourceOf("its id", sourcesOfJobs.filter(_ != RunIdentity.Dbt))),
    fact(
      "attempt",
      IntegerType,
      "how many times the run has been started, this time included; null when nothing says so"
    )
  )

  val conf: StructField = group(
    "conf",
    "the session's settings that Spark's own rules read",
    fact(
      "auto_broadcast_join_threshold",
      LongType,
      "spark.sql.autoBroadcastJoinThreshold, bytes; -1 = never"
    ),
    fact(
      "adaptive_auto_broadcast_join_threshold",
      LongType,
      "spark.sql.adaptive.autoBroadcastJoinThreshold, bytes; null when not set"
    ),
    fact(
      "non_empty_partition_ratio_for_broadcast_join",
      DoubleType,
      "spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin"
    ),
    fact(
      "max_shuffled_hash_join_local_map_threshold",
      LongType,
      "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold, bytes"
    ),
    fact(
      "advisory_partition_size_in_bytes",
      LongType,
      "spark.sql.adaptive.advisoryPartitionSizeInBytes, bytes"
    ),
    fact(
      "coalesce_partitions_parallelism_first",
      BooleanType,
      "spark.sql.adaptive.coalescePartitions.parallelismFirst"
    ),
    fact(
      "coalesce_partitions_enabled",
      BooleanType,
      "spark.sql.adaptive.coalescePartitions.enabled"
    ),
    fact(
      "coalesce_partitions_min_partition_size",
      LongType,
      "spark.sql.adaptive.coalescePartitions.minPartitionSize, bytes"
    ),
    fact(
      "coalesce_partitions_min_partition_num",
      IntegerType,
      "spark.sql.adaptive.coalescePartitions.minPartitionNum; null when not set"
    ),
    fact(
      "coalesce_partitions_initial_partition_num",
      IntegerType,
      "spark.sql.adaptive.coalescePartitions.initialPartitionNum; null when not set"
    ),
    fact(
      "local_shuffle_reader_enabled",
      BooleanType,
      "spark.sql.adaptive.localShuffleReader.enabled"
    ),
    fact(
      "optimize_skews_in_rebalance_partitions_enabled",
      BooleanType,
      "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled"
    ),
    fact(
      "rebalance_partitions_small_partition_factor",
      DoubleType,
      "spark.sql.adaptive.rebalancePartitionsSmallPartitionFactor"
    ),
    fact("skew_join_enabled", BooleanType, "spark.sql.adaptive.skewJoin.enabled"),
    fact(
      "skewed_partition_factor",
      DoubleType,
      "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
    ),
    fact(
      "skewed_partition_threshold_in_bytes",
      LongType,
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes, bytes"
    ),
    fact(
      "force_optimize_skewed_join",
      BooleanType,
      "spark.sql.adaptive.forceOptimizeSkewedJoin"
    ),
    fact("prefer_sort_merge_join", BooleanType, "spark.sql.join.preferSortMergeJoin"),
    fact("shuffled_hash_join_factor", IntegerType, "spark.sql.shuffledHashJoinFactor"),
    fact("shuffle_partitions", IntegerType, "spark.sql.shuffle.partitions"),
    fact(
      "convert_sort_merge_join_to_shuffled_hash_join_enabled",
      BooleanType,
      "spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled; null before Spark 4.3"
    ),
    fact(
      "optimizer_excluded_rules",
      ArrayType(StringType),
      "spark.sql.optimizer.excludedRules, the rules that are switched off"
    ),
    fact(
      "adaptive_optimizer_excluded_rules",
      ArrayType(StringType),
      "spark.sql.adaptive.optimizer.excludedRules, the same of AQE's"
    )
  )

  val cluster: StructField = group(
    "cluster",
    "what the query runs on",
    fact("default_parallelism", IntegerType, "SparkContext.defaultParallelism"),
    fact("executors", IntegerType, "executors registered now; 1 in local mode"),
    fact(
      "task_slots",
      IntegerType,
      "tasks that run at once on one executor; null where an executor takes all its worker's cores and none " +
        "is there yet"
    ),
    fact("executor_memory_bytes", LongType, "heap of an executor, bytes"),
    fact("driver_memory_bytes", LongType, "heap of the driver, bytes"),
    fact("spark_version", StringType, "the running Spark's version, e.g. 4.3.0")
  )

  /** The first of every point, in this order. */
  val groups: Seq[StructField] = Seq(query, conf, cluster)
}

package org.apache.spark.sql.aqepilot.facts

import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.aqepilot.spark.engines.Engine
import org.apache.spark.sql.aqepilot.settings.RunIdentity
import org.apache.spark.sql.aqepilot.spark.{Application, BySettings, SparkJoinRules}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.util.Utils
import org.apache.spark.{SPARK_VERSION, SparkContext}

/** The settings of a session.
  *
  * @param conf
  *   a copy that nobody changes, the same for all sessions with equal settings
  * @param facts
  *   those of them that are facts
  */
final class Settings private[facts] (val conf: SQLConf, val facts: InternalRow)

/** The query that is being planned, and where.
  *
  * @param settings
  *   the session's
  * @param executionId
  *   none outside an execution
  * @param description
  *   of the thread's jobs; null for none
  * @param tags
  *   of the thread's jobs, as Spark has them; null for none
  */
final case class Query private (
    sc: SparkContext,
    settings: Settings,
    executionId: Option[Long],
    description: String,
    tags: String
) {
  private[facts] lazy val run: RunIdentity = Runs.of(settings.conf, sc, executionId)

  private[facts] lazy val row: LazyRow = under(CommonFacts.query.row(this))

  /** What is computed under the query's settings. */
  private[facts] def under[T](body: => T): T = SQLConf.withExistingConf(settings.conf)(body)
}

object Query {

  /** The query of this thread; the same object at each planning of one execution, so that its own facts are computed
    * once.
    *
    * @param conf
    *   the session's settings
    */
  def of(sc: SparkContext, conf: SQLConf, executionId: Option[Long]): Query = {
    val query = Query(
      sc,
      CommonFacts.settings(conf),
      executionId,
      sc.getLocalProperty(SparkContext.SPARK_JOB_DESCRIPTION),
      sc.getLocalProperty("spark.job.tags")
    )
    val latest = known.of(sc)
    val before = latest.get
    if (executionId.nonEmpty && query == before) before
    else {
      latest.set(query)
      query
    }
  }

  private val known = new Application.Value(_ => new AtomicReference[Query])
}

/** The facts that every decision point has. Null always means that Spark does not know. */
object CommonFacts {

  private def sourceOf(what: String, sources: Seq[String]): String =
    s"where $what is from: ${sources.mkString(", ")}"

  private val sourcesOfJobs = RunIdentity.Sources.map(_._1)

  private val ofQuery = Fact.of[Query]

  /** Those of the query itself. */
  val query: Facts[Query] = new Facts(
    ofQuery.fixed("execution_id", "Spark's SQL execution id; null outside an execution (df.rdd)")(
      _.executionId
    ),
    ofQuery(
      "fingerprint",
      "SHA-256 of the analysed plan without literals: the same recurring query has the same " +
        "fingerprint on any day and driver; null outside an execution"
    )(q => QueryFacts.fingerprint(q.executionId)),
    ofQuery.fixed("description", "the job description (SparkContext.setJobDescription)")(
      _.description
    ),
    ofQuery.fixed("app_name", "spark.app.name")(_.sc.appName),
    ofQuery.fixed("app_id", "the application's id")(_.sc.applicationId),
    ofQuery.fixed("user", "the user that runs the application")(_.sc.sparkUser),
    ofQuery.fixed("tags", "job tags (SparkContext.addJobTag), sorted")(q => tags(q.tags)),
    ofQuery("job", "the job that runs, the same name on each day")(_.run.job.value),
    ofQuery("job_source", sourceOf("its name", sourcesOfJobs))(_.run.job.source),
    ofQuery("run", "the run of the job, the same when its scheduler tries it again")(
      _.run.run.value
    ),
    ofQuery("run_source", sourceOf("its id", sourcesOfJobs.filter(_ != RunIdentity.Dbt)))(
      _.run.run.source
    ),
    ofQuery(
      "attempt",
      "how many times the run has been started, this time included; null when nothing says so"
    )(_.run.attempt.map(_.value)),
    HistoryFacts.query
  )

  private def tags(tags: String): Seq[String] =
    Option(tags).toSeq
      .flatMap(_.split(",").toSeq)
      .filter(_.nonEmpty)
      .sorted

  private val setting = Fact.of[SQLConf]

  private val ofSettings: Facts[SQLConf] = new Facts(
    setting(
      "auto_broadcast_join_threshold",
      "spark.sql.autoBroadcastJoinThreshold, bytes; -1 = never"
    )(_.autoBroadcastJoinThreshold),
    setting(
      "adaptive_auto_broadcast_join_threshold",
      "spark.sql.adaptive.autoBroadcastJoinThreshold, bytes; null when not set"
    )(_.getConf(SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD)),
    setting(
      "non_empty_partition_ratio_for_broadcast_join",
      "spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin"
    )(_.nonEmptyPartitionRatioForBroadcastJoin),
    setting(
      "max_shuffled_hash_join_local_map_threshold",
      "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold, bytes"
    )(_.getConf(SQLConf.ADAPTIVE_MAX_SHUFFLE_HASH_JOIN_LOCAL_MAP_THRESHOLD)),
    setting(
      "advisory_partition_size_in_bytes",
      "spark.sql.adaptive.advisoryPartitionSizeInBytes, bytes"
    )(_.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)),
    setting(
      "coalesce_partitions_parallelism_first",
      "spark.sql.adaptive.coalescePartitions.parallelismFirst"
    )(_.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST)),
    setting(
      "coalesce_partitions_enabled",
      "spark.sql.adaptive.coalescePartitions.enabled"
    )(_.getConf(SQLConf.COALESCE_PARTITIONS_ENABLED)),
    setting(
      "coalesce_partitions_min_partition_size",
      "spark.sql.adaptive.coalescePartitions.minPartitionSize, bytes"
    )(_.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)),
    setting(
      "coalesce_partitions_min_partition_num",
      "spark.sql.adaptive.coalescePartitions.minPartitionNum; null when not set"
    )(_.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM)),
    setting(
      "coalesce_partitions_initial_partition_num",
      "spark.sql.adaptive.coalescePartitions.initialPartitionNum; null when not set"
    )(_.getConf(SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM)),
    setting(
      "local_shuffle_reader_enabled",
      "spark.sql.adaptive.localShuffleReader.enabled"
    )(_.getConf(SQLConf.LOCAL_SHUFFLE_READER_ENABLED)),
    setting(
      "optimize_skews_in_rebalance_partitions_enabled",
      "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled"
    )(_.getConf(SQLConf.ADAPTIVE_OPTIMIZE_SKEWS_IN_REBALANCE_PARTITIONS_ENABLED)),
    setting(
      "rebalance_partitions_small_partition_factor",
      "spark.sql.adaptive.rebalancePartitionsSmallPartitionFactor"
    )(_.getConf(SQLConf.ADAPTIVE_REBALANCE_PARTITIONS_SMALL_PARTITION_FACTOR)),
    setting(
      "skew_join_enabled",
      "spark.sql.adaptive.skewJoin.enabled"
    )(_.getConf(SQLConf.SKEW_JOIN_ENABLED)),
    setting(
      "skewed_partition_factor",
      "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
    )(_.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR)),
    setting(
      "skewed_partition_threshold_in_bytes",
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes, bytes"
    )(_.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD)),
    setting(
      "force_optimize_skewed_join",
      "spark.sql.adaptive.forceOptimizeSkewedJoin"
    )(_.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN)),
    setting("prefer_sort_merge_join", "spark.sql.join.preferSortMergeJoin")(_.preferSortMergeJoin),
    setting(
      "shuffled_hash_join_factor",
      "spark.sql.shuffledHashJoinFactor"
    )(_.getConf(SQLConf.SHUFFLE_HASH_JOIN_FACTOR)),
    setting("shuffle_partitions", "spark.sql.shuffle.partitions")(_.numShufflePartitions),
    setting(
      "convert_sort_merge_join_to_shuffled_hash_join_enabled",
      "spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled; null before Spark 4.3"
    )(SparkJoinRules.conversionEnabled(_)),
    setting(
      "optimizer_excluded_rules",
      "spark.sql.optimizer.excludedRules, the rules that are switched off"
    )(c => excluded(c.getConf(SQLConf.OPTIMIZER_EXCLUDED_RULES))),
    setting(
      "adaptive_optimizer_excluded_rules",
      "spark.sql.adaptive.optimizer.excludedRules, the same of AQE's"
    )(c => excluded(c.getConf(SQLConf.ADAPTIVE_OPTIMIZER_EXCLUDED_RULES))),
    setting(
      "engine",
      "the native engine that is switched on: COMET (Apache DataFusion Comet) or GLUTEN; null without one"
    )(Engine.of(_).map(_.name))
  )

  private def excluded(rules: Option[String]): Seq[String] = rules.toSeq.flatMap(Utils.stringToSeq)

  private val known = new BySettings[Settings]

  /** The settings of a session, read once for all sessions with equal ones. */
  def settings(conf: SQLConf): Settings =
    known.of(conf)(copy => new Settings(copy, ofSettings.row(copy).copy()))

  private val ofCluster = Fact.of[SparkContext]

  /** Those of the cluster. */
  val cluster: Facts[SparkContext] = new Facts(
    ofCluster("default_parallelism", "SparkContext.defaultParallelism")(_.defaultParallelism),
    ofCluster("executors", "executors registered now; 1 in local mode")(Cluster.executors),
    ofCluster(
      "task_slots",
      "tasks that run at once on one executor; null where an executor takes all its worker's cores and none " +
        "is there yet"
    )(Cluster.taskSlots),
    ofCluster.fixed(
      "executor_memory_bytes",
      "heap of an executor, bytes"
    )(Cluster.executorMemoryBytes),
    ofCluster.fixed("driver_memory_bytes", "heap of the driver, bytes")(_ =>
      Runtime.getRuntime.maxMemory()
    ),
    ofCluster.fixed("spark_version", "the running Spark's version, e.g. 4.3.0")(_ => SPARK_VERSION)
  )

  private val fact = Fact.of[Query]

  /** The first facts of every point, in this order. */
  val groups: Seq[Fact[Query]] = Seq(
    fact.struct("query", "the query that is being planned", query.schema)(_.row),
    fact.struct("conf", "the session's settings that Spark's own rules read", ofSettings.schema)(
      _.settings.facts
    ),
    fact.group("cluster", "what the query runs on", cluster)(_.sc)
  )

  /** Their fields. */
  val fields: Seq[StructField] = groups.map(_.field)

  /** Names of tables or files. */
  def tables[A, T: FactType](fact: Fact.Declared[A])(value: A => T): Fact[A] =
    fact.fixed("tables", "names of the tables or files beneath, in plan order")(value)

  def rowBytes[A](fact: Fact.Declared[A])(value: A => Long): Fact[A] = fact.fixed(
    "row_bytes",
    "Spark's estimate of one row's size, by its columns' types, bytes (EstimationUtils.getSizePerRow)"
  )(value)

  /** @param plan
    *   what could meet the faults, in words
    */
  def sparkFaults[A](fact: Fact.Declared[A], plan: String)(value: A => Seq[String]): Fact[A] = fact(
    "spark_faults",
    s"numbers of those faults of the running Spark release that a changed plan of $plan could meet: SPARK_FAULT " +
      "refuses the answers that lead there"
  )(value)

  /** The sizes of one finished shuffle's partitions. */
  def sizesOfOne[A](fact: Fact.Declared[A])(value: A => Option[ShuffleFacts]): Seq[Fact[A]] =
    sizes(
      fact,
      "shuffle bytes (compressed) of each partition, as MapOutputStatistics has them"
    )(value)

  /** The sizes of finished shuffles' partitions.
    *
    * @param meaning
    *   of the size of one partition
    * @param value
    *   none where no shuffle has finished
    */
  def sizes[A](fact: Fact.Declared[A], meaning: String)(
      value: A => Option[ShuffleFacts]
  ): Seq[Fact[A]] = Seq(
    fact.fixed("bytes_by_partition_id", meaning)(value(_).map(_.array)),
    fact(
      "bytes_are_exact",
      "false above spark.shuffle.minNumPartitionsToHighlyCompress partitions, where Spark reports " +
        "averages for small blocks"
    )(value(_).map(_.bytes.length <= JoinSide.exactUpTo)),
    fact.fixed("shuffle_bytes", "sum of bytes_by_partition_id")(value(_).map(_.total)),
    fact.fixed("max_bytes", "largest of bytes_by_partition_id")(value(_).map(_.max)),
    fact.fixed("median_bytes", "median of bytes_by_partition_id, at least 1 (Utils.median)")(
      value(_).map(_.median)
    )
  )
}

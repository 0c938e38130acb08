package org.apache.spark.sql.aqepilot.facts

import scala.util.Try

import org.apache.spark.internal.config
import org.apache.spark.scheduler.local.LocalSchedulerBackend
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.spark.{BySettings, Recent, SparkJoinRules}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.Utils
import org.apache.spark.{ExecutorAllocationClient, SPARK_VERSION, SparkConf, SparkContext}

/** The facts that every decision point has, in the order of `CommonFacts`. */
object QueryFacts {

  /** The SQL execution that this thread works for; None outside one (`df.rdd`, `explain`). */
  def executionId(sc: SparkContext): Option[Long] =
    Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).flatMap(s => Try(s.toLong).toOption)

  /** The query that is executed under an id; None once it has ended, and outside an execution. */
  def execution(executionId: Option[Long]): Option[QueryExecution] =
    executionId.flatMap(id => Option(SQLExecution.getQueryExecution(id)))

  /** The query's fingerprint, computed at the first call for an execution. */
  def fingerprint(executionId: Option[Long]): Option[String] =
    executionId.flatMap(Fingerprints.of)

  def query(sc: SparkContext, executionId: Option[Long]): LazyRow = {
    lazy val run = Runs.of(SQLConf.get, sc, executionId)
    LazyRow(
      () => executionId.getOrElse(null),
      () => string(fingerprint(executionId).orNull),
      () => string(sc.getLocalProperty(SparkContext.SPARK_JOB_DESCRIPTION)),
      () => string(sc.appName),
      () => string(sc.applicationId),
      () => string(sc.sparkUser),
      () =>
        strings(
          Option(sc.getLocalProperty("spark.job.tags")).toSeq
            .flatMap(_.split(",").toSeq)
            .filter(_.nonEmpty)
            .sorted
        ),
      () => string(run.job.value),
      () => string(run.job.source),
      () => string(run.run.value),
      () => string(run.run.source),
      () => run.attempt.map(_.value).getOrElse(null)
    )
  }

  /** The settings that are facts. */
  def conf(c: SQLConf): InternalRow = confs.of(c)(readConf(_).copy())

  private val confs = new BySettings[InternalRow]

  private def readConf(c: SQLConf): LazyRow = LazyRow(
    () => c.autoBroadcastJoinThreshold,
    () => c.getConf(SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD).getOrElse(null),
    () => c.nonEmptyPartitionRatioForBroadcastJoin,
    () => c.getConf(SQLConf.ADAPTIVE_MAX_SHUFFLE_HASH_JOIN_LOCAL_MAP_THRESHOLD),
    () => c.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES),
    () => c.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST),
    () => c.getConf(SQLConf.COALESCE_PARTITIONS_ENABLED),
    () => c.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE),
    () => c.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM).getOrElse(null),
    () => c.getConf(SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM).getOrElse(null),
    () => c.getConf(SQLConf.LOCAL_SHUFFLE_READER_ENABLED),
    () => c.getConf(SQLConf.ADAPTIVE_OPTIMIZE_SKEWS_IN_REBALANCE_PARTITIONS_ENABLED),
    () => c.getConf(SQLConf.ADAPTIVE_REBALANCE_PARTITIONS_SMALL_PARTITION_FACTOR),
    () => c.getConf(SQLConf.SKEW_JOIN_ENABLED),
    () => c.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_FACTOR),
    () => c.getConf(SQLConf.SKEW_JOIN_SKEWED_PARTITION_THRESHOLD),
    () => c.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN),
    () => c.preferSortMergeJoin,
    () => c.getConf(SQLConf.SHUFFLE_HASH_JOIN_FACTOR),
    () => c.numShufflePartitions,
    () => SparkJoinRules.conversionEnabled(c).getOrElse(null),
    () => excluded(c.getConf(SQLConf.OPTIMIZER_EXCLUDED_RULES)),
    () => excluded(c.getConf(SQLConf.ADAPTIVE_OPTIMIZER_EXCLUDED_RULES))
  )

  private def excluded(rules: Option[String]): ArrayData =
    strings(rules.toSeq.flatMap(Utils.stringToSeq))

  def cluster(sc: SparkContext): LazyRow = LazyRow(
    () => sc.defaultParallelism,
    () => executors(sc),
    () => taskSlots(sc).getOrElse(null),
    () => executorMemoryBytes(sc),
    () => Runtime.getRuntime.maxMemory(),
    () => string(SPARK_VERSION)
  )

  private def executors(sc: SparkContext): Int = sc.schedulerBackend match {
    case client: ExecutorAllocationClient => client.getExecutorIds().size
    case _                                => 1
  }

  /** Tasks that run at once on one executor; None while that is not known. */
  def taskSlots(sc: SparkContext): Option[Int] = {
    val cpusPerTask = sc.conf.get(config.CPUS_PER_TASK.key, "1").toDouble // whole before 4.3
    def ofCores(cores: Int) = Some(math.max(1, (cores / cpusPerTask).toInt))
    sc.schedulerBackend match {
      case local: LocalSchedulerBackend                 => ofCores(local.totalCores)
      case _ if sc.conf.contains(config.EXECUTOR_CORES) =>
        ofCores(sc.conf.get(config.EXECUTOR_CORES))
      case _ => sc.conf.get("spark.master", "") match {
          case LocalCluster(cores)               => ofCores(cores.toInt)
          case url if url.startsWith("spark://") =>
            // An executor takes all the cores of its worker, which the driver knows once it has registered.
            sc.statusStore.executorList(activeOnly = true)
              .filterNot(_.id == SparkContext.DRIVER_IDENTIFIER).map(_.maxTasks)
              .reduceOption(_ max _).filter(_ > 0)
          case _ => ofCores(sc.conf.get(config.EXECUTOR_CORES))
        }
    }
  }

  private val LocalCluster = """local-cluster\[\s*\d+\s*,\s*(\d+)\s*,\s*\d+\s*\]""".r

  /** Heap of an executor: in local mode the driver's. */
  def executorMemoryBytes(sc: SparkContext): Long =
    if (isLocal(sc.conf)) Runtime.getRuntime.maxMemory()
    else sc.conf.get(config.EXECUTOR_MEMORY) * 1024L * 1024L

  private def isLocal(conf: SparkConf): Boolean = {
    val master = conf.get("spark.master", "")
    master == "local" || master.startsWith("local[")
  }

  def string(s: String): UTF8String = UTF8String.fromString(s)

  def strings(s: Seq[String]): ArrayData = new GenericArrayData(s.map(string).toArray[Any])
}

/** Each running query's fingerprint, computed once. */
private object Fingerprints {

  private val known = Recent.map[(String, Long), Option[String]](1000)

  def of(executionId: Long): Option[String] =
    SparkSession.getActiveSession.map(_.sparkContext.applicationId).flatMap { app =>
      val key = (app, executionId)
      val found = known.get(key)
      if (found != null) found
      else {
        val computed = QueryFacts
          .execution(Some(executionId))
          .flatMap(qe => Option(Fingerprint.of(qe.analyzed)))
        known.put(key, computed)
        computed
      }
    }
}

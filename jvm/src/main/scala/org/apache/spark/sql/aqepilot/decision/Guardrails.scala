package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.internal.config
import org.apache.spark.sql.aqepilot.facts.{Cluster, QueryFacts}
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Setting}
import org.apache.spark.sql.aqepilot.spark.{Application, BySettings, Recent}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{SparkConf, SparkContext}

/** The guard rails in force for a query.
  *
  * The submitted configuration sets them, or else they follow from Spark's own limits and the memory there is.
  * A session may tighten them, never loosen.
  */
object Guardrails {

  /** `BroadcastExchangeExec.MAX_BROADCAST_TABLE_BYTES`. */
  private val MaxBroadcastTableBytes = 8L << 30

  /** `UnifiedMemoryManager.RESERVED_SYSTEM_MEMORY_BYTES`. */
  private val ReservedBytes = 300L << 20

  def of(conf: SQLConf, sc: SparkContext): Guards = {
    val slots = Cluster.taskSlots(sc)
    known.of(sc).computeIfAbsent(slots, _ => new BySettings[Guards]).of(conf)(read(_, sc, slots))
  }

  private val known = new Application.Value(_ => Recent.map[Option[Int], BySettings[Guards]](4))

  private def read(conf: SQLConf, sc: SparkContext, slots: Option[Int]): Guards = {
    val growth = math.max(
      AqePilotConf.inForce(AqePilotConf.Growth).toDouble,
      AqePilotConf.get(conf, AqePilotConf.Growth).fold(0.0)(_.toDouble)
    )
    Guards(
      tightest(conf, AqePilotConf.MaxBroadcastBytes, maxBroadcastBytes(sc, growth)),
      maxBroadcastTableBytes(sc, growth),
      tightest(conf, AqePilotConf.MaxHashBuildBytes, maxHashBuildBytes(sc, slots)),
      growth,
      smallest(conf, AqePilotConf.MaxPartitions),
      smallest(conf, AqePilotConf.MaxCrossProducts)
    )
  }

  /** What the session asks for and does not get. */
  def problems(conf: SQLConf, sc: SparkContext): Seq[Problem] = {
    val guards = of(conf, sc)
    def loosened(setting: Setting, inForce: Long) = AqePilotConf
      .get(conf, setting)
      .filter(AqePilotConf.toBytes(_) > inForce)
      .map(v => problem(setting, v, inForce.toString))
    val growth = AqePilotConf
      .get(conf, AqePilotConf.Growth)
      .filter(_.toDouble < guards.growth)
      .map(v => problem(AqePilotConf.Growth, v, guards.growth.toString))
    def more(setting: Setting, inForce: Int) = AqePilotConf
      .get(conf, setting)
      .filter(_.trim.toInt > inForce)
      .map(v => problem(setting, v, inForce.toString))
    Seq(
      loosened(AqePilotConf.MaxBroadcastBytes, guards.maxBroadcastBytes),
      loosened(AqePilotConf.MaxHashBuildBytes, guards.maxHashBuildBytes),
      growth,
      more(AqePilotConf.MaxPartitions, guards.maxPartitions),
      more(AqePilotConf.MaxCrossProducts, guards.maxCrossProducts)
    ).flatten
  }

  private def problem(setting: Setting, asked: String, inForce: String) = Problem(
    Problem.GuardLoosened,
    s"${setting.key}=$asked in the session is looser than $inForce, which stays in force: a session may only " +
      "tighten a guard rail; submit a looser one with the application"
  )

  private def smallest(conf: SQLConf, setting: Setting): Int = {
    val cap = AqePilotConf.inForce(setting).toInt
    AqePilotConf.get(conf, setting).fold(cap)(v => math.min(cap, v.trim.toInt))
  }

  private def tightest(conf: SQLConf, setting: Setting, derived: => Long): Long = {
    val cap = AqePilotConf.getSubmitted(setting).map(AqePilotConf.toBytes).getOrElse(derived)
    AqePilotConf.get(conf, setting).map(AqePilotConf.toBytes).fold(cap)(math.min(cap, _))
  }

  private def maxBroadcastBytes(sc: SparkContext, growth: Double): Long = {
    val result = sc.conf.get(config.MAX_RESULT_SIZE)
    val fits = (broadcastMemory(sc) / growth).toLong
    Seq(MaxBroadcastTableBytes, fits, if (result > 0) result else Long.MaxValue).min
  }

  /** Who submits a looser limit for a side has its hash table, too. */
  private def maxBroadcastTableBytes(sc: SparkContext, growth: Double): Long = {
    val submitted =
      AqePilotConf.getSubmitted(AqePilotConf.MaxBroadcastBytes).map(AqePilotConf.toBytes)
    math.max(broadcastMemory(sc), submitted.fold(0L)(bytes => (bytes * growth).toLong))
  }

  private def broadcastMemory(sc: SparkContext): Long = executionBytes(
    sc.conf,
    math.min(Runtime.getRuntime.maxMemory(), Cluster.executorMemoryBytes(sc))
  ) / 2

  /** Nothing while the tasks that share an executor's memory are not known. Of a task's share an eighth is left for
    * the page that is begun last (`MemoryManager.pageSizeBytes`).
    */
  private def maxHashBuildBytes(sc: SparkContext, slots: Option[Int]): Long = slots.fold(0L) { n =>
    val share = guaranteedBytes(sc.conf, Cluster.executorMemoryBytes(sc)) / n
    share - share / 8
  }

  /** What an executor has for execution however much is cached and broadcast there: those keep their part of the
    * memory (`UnifiedMemoryManager`, `spark.memory.storageFraction`). With off-heap memory Spark has hash tables there, but
    * not of every key in every version: the smaller of the two holds either.
    */
  private[aqepilot] def guaranteedBytes(conf: SparkConf, heap: Long): Long = {
    val offHeap =
      if (conf.get(config.MEMORY_OFFHEAP_ENABLED)) conf.get(config.MEMORY_OFFHEAP_SIZE)
      else Long.MaxValue
    val all = math.min(executionBytes(conf, heap), offHeap)
    (all * (1 - conf.get(config.MEMORY_STORAGE_FRACTION))).toLong
  }

  private def executionBytes(conf: SparkConf, heap: Long): Long =
    (math.max(0L, heap - ReservedBytes) * conf.get(config.MEMORY_FRACTION)).toLong
}

package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.internal.config
import org.apache.spark.sql.aqepilot.facts.Cluster
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
      AqePilotConf.Growth.inForce,
      AqePilotConf.Growth.in(conf).getOrElse(0.0)
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
    def loosened[T](setting: Setting[T], inForce: T)(isLooser: (T, T) => Boolean) =
      if (setting.in(conf).exists(isLooser(_, inForce)))
        setting.textIn(conf).map(problem(setting, _, inForce.toString))
      else None
    Seq(
      loosened(AqePilotConf.MaxBroadcastBytes, guards.maxBroadcastBytes)(_ > _),
      loosened(AqePilotConf.MaxHashBuildBytes, guards.maxHashBuildBytes)(_ > _),
      loosened(AqePilotConf.Growth, guards.growth)(_ < _),
      loosened(AqePilotConf.MaxPartitions, guards.maxPartitions)(_ > _),
      loosened(AqePilotConf.MaxCrossProducts, guards.maxCrossProducts)(_ > _)
    ).flatten
  }

  private def problem(setting: Setting[_], asked: String, inForce: String) = Problem(
    Problem.GuardLoosened,
    s"${setting.key}=$asked in the session is looser than $inForce, which stays in force: a session may only " +
      "tighten a guard rail; submit a looser one with the application"
  )

  private def smallest(conf: SQLConf, setting: Setting[Int]): Int = {
    val cap = setting.inForce
    setting.in(conf).fold(cap)(math.min(cap, _))
  }

  private def tightest(conf: SQLConf, setting: Setting[Long], derived: => Long): Long = {
    val cap = setting.submitted.getOrElse(derived)
    setting.in(conf).fold(cap)(math.min(cap, _))
  }

  private def maxBroadcastBytes(sc: SparkContext, growth: Double): Long = {
    val result = sc.conf.get(config.MAX_RESULT_SIZE)
    val fits = (broadcastMemory(sc) / growth).toLong
    Seq(MaxBroadcastTableBytes, fits, if (result > 0) result else Long.MaxValue).min
  }

  /** Who submits a looser limit for a side has its hash table, too. */
  private def maxBroadcastTableBytes(sc: SparkContext, growth: Double): Long = {
    val submitted = AqePilotConf.MaxBroadcastBytes.submitted
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

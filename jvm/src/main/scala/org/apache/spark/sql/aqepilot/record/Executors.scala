package org.apache.spark.sql.aqepilot.record

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler.{SparkListenerExecutorAdded, SparkListenerExecutorRemoved}

/** The executors that an application has, and those that it had while a query ran that is still open. */
final private[record] class Executors(sc: SparkContext) {
  import Executors._

  private val known = mutable.HashMap.empty[String, Executor]

  def added(e: SparkListenerExecutorAdded): Unit = {
    val memory = memoryMiB(e.executorId, e.executorInfo.resourceProfileId)
    known.put(e.executorId, Executor(e.executorInfo.totalCores, memory, e.time))
  }

  def removed(e: SparkListenerExecutorRemoved): Unit =
    known.get(e.executorId).foreach(executor =>
      known.put(e.executorId, executor.copy(removed = Some(e.time)))
    )

  /** Those that were there before anybody listened. */
  def seenNow(): Unit = sc.statusStore.executorList(activeOnly = true).map(_.id).foreach(seen)

  /** A task ran on it. */
  def seen(id: String): Unit = if (!known.contains(id))
    for (
      executor <- Try(sc.statusStore.executorSummary(id))
      if executor.isActive && executor.totalCores > 0
    ) {
      val memory = memoryMiB(id, executor.resourceProfileId)
      known.put(id, Executor(executor.totalCores, memory, executor.addTime.getTime))
    }

  /** Milliseconds of cores that they had from one time to another, busy or not. */
  def coreMillis(from: Long, to: Long): Long =
    known.values.map(executor => executor.cores * executor.overlap(from, to)).sum

  /** Their memory times the seconds that they had it; none where it is not known of one. */
  def memoryMiBSeconds(from: Long, to: Long): Option[Long] = {
    val there = known.values.filter(_.overlap(from, to) > 0)
    if (there.isEmpty || there.exists(_.memoryMiB.isEmpty)) None
    else Some(there.flatMap(executor =>
      executor.memoryMiB.map(_ * executor.overlap(from, to))
    ).sum / 1000)
  }

  /** Forgets those that were gone before a time. */
  def forget(before: Long): Unit =
    known.filter(_._2.removed.exists(_ < before)).keys.toSeq.foreach(known.remove)

  /** What its resource profile asks for: heap, and of overhead, off-heap and Python's memory what is set. None in local
    * mode, where the driver is the executor.
    */
  private def memoryMiB(id: String, profile: Int): Option[Long] =
    if (id == SparkContext.DRIVER_IDENTIFIER) None
    else Try(sc.resourceProfileManager.resourceProfileFromId(profile)).toOption.map { resources =>
      Memory.flatMap(resources.executorResources.get).map(_.amount).sum
    }
}

private object Executors {
  private val Memory = Seq(
    ResourceProfile.MEMORY,
    ResourceProfile.OVERHEAD_MEM,
    ResourceProfile.OFFHEAP_MEM,
    ResourceProfile.PYSPARK_MEM
  )

  final private case class Executor(
      cores: Int,
      memoryMiB: Option[Long],
      added: Long,
      removed: Option[Long] = None
  ) {
    def overlap(from: Long, to: Long): Long =
      (removed.fold(to)(_.min(to)) - added.max(from)).max(0L)
  }
}

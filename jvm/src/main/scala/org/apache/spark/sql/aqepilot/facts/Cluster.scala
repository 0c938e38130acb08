package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.internal.config
import org.apache.spark.scheduler.local.LocalSchedulerBackend
import org.apache.spark.{ExecutorAllocationClient, SparkConf, SparkContext}

/** What a query runs on. */
object Cluster {

  /** Executors that are registered now; 1 in local mode. */
  def executors(sc: SparkContext): Int = sc.schedulerBackend match {
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
}

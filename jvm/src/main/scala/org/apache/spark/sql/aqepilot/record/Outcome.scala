package org.apache.spark.sql.aqepilot.record

import scala.collection.mutable

import org.apache.spark.scheduler.{SparkListenerTaskEnd, StageInfo}
import org.apache.spark.sql.execution.SparkPlanInfo
import org.apache.spark.{Success, TaskCommitDenied, TaskKilled}

/** How a query went, added up while it runs. The figures are those that `aqepilot.log` reads of Spark's own events in
  * Python, by the same rules: a test compares the two.
  */
final private[record] class Outcome {
  import Outcome._

  var runMillis, cpuNanos, gcMillis, inputBytes, shuffleReadBytes, shuffleWriteBytes = 0L
  var memorySpillBytes, diskSpillBytes, peakExecutionMemoryBytes, failedTasks, killedTasks = 0L
  var stages, retriedStages = 0L
  private var mostOverMedian = Option.empty[Double]
  private var lastPlan = Option.empty[SparkPlanInfo]
  // Run times of the successful tasks of each attempt of a stage that has not completed.
  private val running = mutable.HashMap.empty[(Int, Int), RunTimes]

  def planned(plan: SparkPlanInfo): Unit = lastPlan = Some(plan)

  def submitted(stage: StageInfo): Unit = {
    stages += 1
    if (stage.attemptNumber() > 0) retriedStages += 1
    if (stage.numTasks >= FewestTasks)
      running.put((stage.stageId, stage.attemptNumber()), new RunTimes)
  }

  def completed(stage: StageInfo): Unit =
    running.remove((stage.stageId, stage.attemptNumber())).foreach(compare)

  def ended(end: SparkListenerTaskEnd): Unit = {
    end.reason match {
      case Success | _: TaskCommitDenied =>
      case _: TaskKilled                 => killedTasks += 1
      case _                             => failedTasks += 1
    }
    for (task <- Option(end.taskMetrics)) {
      runMillis += task.executorRunTime
      cpuNanos += task.executorCpuTime
      gcMillis += task.jvmGCTime
      inputBytes += task.inputMetrics.bytesRead
      shuffleReadBytes += task.shuffleReadMetrics.totalBytesRead
      shuffleWriteBytes += task.shuffleWriteMetrics.bytesWritten
      memorySpillBytes += task.memoryBytesSpilled
      diskSpillBytes += task.diskBytesSpilled
      peakExecutionMemoryBytes = peakExecutionMemoryBytes.max(task.peakExecutionMemory)
      if (end.reason == Success)
        running.get((end.stageId, end.stageAttemptId)).foreach(_ += task.executorRunTime)
    }
  }

  /** The longest task over the median, of the attempt of a stage where that is most; none where no stage has three tasks.
    */
  def maxOverMedian: Option[Double] = {
    running.values.foreach(compare)
    running.clear()
    mostOverMedian
  }

  /** The joins of the last plan, root first. */
  def joins: Seq[String] = lastPlan.toSeq.flatMap(joinsOf)

  private def compare(times: RunTimes): Unit =
    for (ratio <- times.maxOverMedian if mostOverMedian.forall(_ < ratio))
      mostOverMedian = Some(ratio)
}

private[record] object Outcome {

  /** A stage of fewer tasks has no median to speak of. */
  private val FewestTasks = 3
  private val Join = "^(?:[A-Za-z0-9_]+Join|CartesianProduct)".r
  private val BuildSide = "Build(?:Left|Right)".r

  private def joinsOf(plan: SparkPlanInfo): Seq[String] = {
    val own = Join.findFirstIn(plan.nodeName).map { join =>
      (join +: BuildSide.findFirstIn(plan.nodeName + plan.simpleString).toSeq).mkString(" ")
    }
    own.toSeq ++ plan.children.flatMap(joinsOf)
  }

  /** Run times of tasks, milliseconds. */
  final private class RunTimes {
    private val millis = mutable.ArrayBuilder.make[Long]

    def +=(one: Long): Unit = millis += one

    /** Of an even number, the lower of the two in the middle, as Spark's percentile_approx has it. */
    def maxOverMedian: Option[Double] = {
      val sorted = millis.result().sorted
      sorted.lastOption.map(_.toDouble / sorted((sorted.length - 1) / 2).max(1L))
    }
  }
}

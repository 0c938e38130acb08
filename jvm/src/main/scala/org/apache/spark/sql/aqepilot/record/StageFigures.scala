package org.apache.spark.sql.aqepilot.record

import java.util.Arrays

import org.apache.spark.scheduler.StageInfo

/** How an attempt of a stage went.
  *
  * @param accumulators
  *   the ids of what its tasks added to, sorted: a node's metric is in them where the node ran in the stage
  * @param taskMillis
  *   all its tasks ran, milliseconds
  * @param readBytes
  *   of shuffles, compressed, and of files
  * @param spilledBytes
  *   on disk
  * @param peakMemoryBytes
  *   of its tasks' execution memory, the mean
  */
final private[record] case class StageFigures(
    stage: Int,
    accumulators: Array[Long],
    taskMillis: Long,
    readBytes: Long,
    readRows: Long,
    spilledBytes: Long,
    peakMemoryBytes: Long,
    failed: Boolean
) {
  def added(accumulator: Long): Boolean = Arrays.binarySearch(accumulators, accumulator) >= 0
}

private[record] object StageFigures {

  def of(stage: StageInfo): StageFigures = {
    val metrics = stage.taskMetrics
    val accumulators = stage.accumulables.keysIterator.toArray
    Arrays.sort(accumulators)
    StageFigures(
      stage.stageId,
      accumulators,
      metrics.executorRunTime,
      metrics.shuffleReadMetrics.totalBytesRead + metrics.inputMetrics.bytesRead,
      metrics.shuffleReadMetrics.recordsRead + metrics.inputMetrics.recordsRead,
      metrics.diskBytesSpilled,
      metrics.peakExecutionMemory / math.max(1, stage.numTasks),
      stage.failureReason.isDefined
    )
  }
}

package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

/** Broadcast joins whose streamed side has its skewed partitions split.
  *
  * From 4.2 on Spark's own rule splits these too, where local reads are off, and marks them.
  */
object SkewedBroadcastJoins {

  /** The join, marked as Spark would. */
  def marked(join: BroadcastHashJoinExec, isSkewJoin: Boolean): BroadcastHashJoinExec =
    join.copy(isSkewJoin = isSkewJoin)
}

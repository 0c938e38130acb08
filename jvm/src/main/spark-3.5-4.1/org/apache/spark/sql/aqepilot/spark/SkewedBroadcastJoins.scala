package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

/** Broadcast joins whose streamed side has its skewed partitions split.
  *
  * 3.5 to 4.1 have no mark for it: their own rule splits shuffled joins only.
  */
object SkewedBroadcastJoins {

  /** The join, marked as Spark would. */
  def marked(join: BroadcastHashJoinExec, isSkewJoin: Boolean): BroadcastHashJoinExec =
    join
}

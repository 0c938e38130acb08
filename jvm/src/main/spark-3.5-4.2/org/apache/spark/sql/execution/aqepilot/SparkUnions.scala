package org.apache.spark.sql.execution.aqepilot

import org.apache.spark.sql.execution.UnionExec

/** Unions until 4.2: Spark coalesces the shuffles of each child by themselves. */
object SparkUnions {
  def readsApart(union: UnionExec): Boolean = true
}

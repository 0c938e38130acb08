package org.apache.spark.sql.execution.aqepilot

import org.apache.spark.sql.execution.UnionExec

/** Unions from 4.3 on: one whose output keeps its children's partitioning needs equal numbers of them, so that
  * Spark coalesces their shuffles together. In Spark's package, for it keeps to itself which those are.
  */
object SparkUnions {
  def readsApart(union: UnionExec): Boolean = union.isPlainUnion
}

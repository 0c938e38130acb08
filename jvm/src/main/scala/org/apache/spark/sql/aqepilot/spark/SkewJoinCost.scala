package org.apache.spark.sql.aqepilot.spark

/** Spark's cost of a plan, as one number. */
object SkewJoinCost {

  /** What one skew join weighs against one shuffle where `forceOptimizeSkewedJoin` compares them first; one
    * shuffle weighs as much against one local sort.
    */
  val Weight: Double = 1048576.0
}

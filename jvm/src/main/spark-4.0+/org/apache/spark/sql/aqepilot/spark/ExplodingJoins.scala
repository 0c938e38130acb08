package org.apache.spark.sql.aqepilot.spark

/** Joins that may make many rows of each, [[CoalesceGroups.isExploding]].
  *
  * From 4.0 on CoalesceShufflePartitions takes the minimum size for the target in a stage with one.
  */
private[aqepilot] object ExplodingJoins {
  val takeMinimumSize: Boolean = true
}

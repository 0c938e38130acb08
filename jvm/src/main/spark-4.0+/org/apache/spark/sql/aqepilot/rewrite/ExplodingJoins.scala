package org.apache.spark.sql.aqepilot.rewrite

/** Joins that may make many rows of each, [[CoalesceGroups.isExploding]].
  *
  * From 4.0 on CoalesceShufflePartitions takes the minimum size for the target in a stage with one.
  */
private[rewrite] object ExplodingJoins {
  val takeMinimumSize: Boolean = true
}

package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan

/** [[CoalesceShuffleReads]], named in a class of its own: the JVM loads what a class refers to when it links it, and
  * a vendor's Spark may lack the trait that this rule has.
  */
object StageRule {
  def apply(): Rule[SparkPlan] = CoalesceShuffleReads
}

package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.aqepilot.spark.SkewJoinCost.Weight
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{
  Cost,
  CostEvaluator,
  SimpleCost,
  SimpleCostEvaluator
}
import org.apache.spark.sql.internal.SQLConf

/** Spark's own costs in 3.5 to 4.2: one number, shuffles with the skew joins above bit 32. From 4.3 on they are
  * three numbers, local sorts among them.
  */
object SparkCosts {

  /** The evaluator that Spark makes under these settings. */
  def evaluator(conf: SQLConf): CostEvaluator =
    SimpleCostEvaluator(conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN))

  /** Spark's own cost in shuffles, None for another evaluator's. */
  def inShuffles(cost: Cost): Option[Double] = cost match {
    case SimpleCost(value) => Some((value >> 32) * Weight + (value & 0xffffffffL))
    case _                 => None
  }

  /** `spark.sql.adaptive.costEvaluator.countLocalSort.enabled`: not there. */
  def countsLocalSorts(conf: SQLConf): Option[Boolean] = None

  /** Whether a join's skewed partitions are split; a broadcast join's can be from 4.2 on. */
  def isSkewJoin(plan: SparkPlan): Boolean = plan.nodeName.endsWith("Join(skew=true)")
}

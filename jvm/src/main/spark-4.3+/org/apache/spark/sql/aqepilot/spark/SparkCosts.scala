package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.aqepilot.spark.SkewJoinCost.Weight
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{
  Cost,
  CostEvaluator,
  SimpleCost,
  SimpleCostEvaluator
}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledJoin}
import org.apache.spark.sql.internal.SQLConf

/** Spark's own costs from 4.3 on: three numbers, local sorts among them. Before, they were one. */
object SparkCosts {

  /** The evaluator that Spark makes under these settings. */
  def evaluator(conf: SQLConf): CostEvaluator = SimpleCostEvaluator(
    conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN),
    conf.costEvaluatorCountLocalSortEnabled
  )

  /** Spark's own cost in shuffles, None for another evaluator's. */
  def inShuffles(cost: Cost): Option[Double] = cost match {
    case SimpleCost(skewJoins, shuffles, localSorts) =>
      Some(shuffles - skewJoins * Weight + localSorts / Weight)
    case _ => None
  }

  /** Whether local sorts count, between plans of as many skew joins and shuffles. */
  def countsLocalSorts(conf: SQLConf): Option[Boolean] =
    Some(conf.costEvaluatorCountLocalSortEnabled)

  /** Whether a join's skewed partitions are split. */
  def isSkewJoin(plan: SparkPlan): Boolean = plan match {
    case j: ShuffledJoin          => j.isSkewJoin
    case j: BroadcastHashJoinExec => j.isSkewJoin
    case _                        => false
  }
}

package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, JoinStrategy, SkewLayout}
import org.apache.spark.sql.aqepilot.spark.SparkCosts
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.Cost
import org.apache.spark.sql.internal.SQLConf

/** A plan, and Spark's own cost of it. */
final private case class SparkCost(plan: SparkPlan, cost: Cost) {

  def inShuffles: Option[Double] = SparkCosts.inShuffles(cost)

  /** Its skew joins that a policy forces. */
  def forcedSkewJoins: Int = plan.collect {
    case j
        if JoinStrategy.isJoin(j) && JoinState.of(j).exists(_.isForced) &&
          (SparkCosts.isSkewJoin(j) || SkewLayout.of(j).isSplit) => j
  }.size
}

/** A plan that a query has, and the one that AQE would adopt instead. */
final private class Replan(val current: SparkCost, val candidate: SparkCost, conf: SQLConf) {

  /** Whether Spark's own costs have AQE adopt the candidate. */
  lazy val isAdoptedBySpark: Boolean =
    candidate.cost < current.cost || candidate.cost == current.cost

  lazy val currentToCost: PlanToCost = PlanToCost(
    PlanWork.of(current.plan),
    current.inShuffles,
    SparkCosts.countsLocalSorts(conf),
    current = None
  )

  lazy val candidateToCost: PlanToCost = PlanToCost(
    PlanWork.of(candidate.plan),
    candidate.inShuffles,
    SparkCosts.countsLocalSorts(conf),
    Some(currentToCost)
  )

  /** What the plan that an order decides on reads and Spark's choice does not, if something.
    *
    * @param order
    *   the candidate's cost against the current plan's, as compare has it
    */
  def readsMore(order: Int): Option[String] = (order <= 0, isAdoptedBySpark) match {
    case (true, false) => candidateToCost.work.readsMoreThan(currentToCost.work)
    case (false, true) => currentToCost.work.readsMoreThan(candidateToCost.work)
    case _             => None
  }

  /** The order by the numbers of skew joins that policies force; 0 where both plans have as many. */
  def orderByForced: Int =
    if (JoinState.anyForced) Integer.compare(current.forcedSkewJoins, candidate.forcedSkewJoins)
    else 0
}

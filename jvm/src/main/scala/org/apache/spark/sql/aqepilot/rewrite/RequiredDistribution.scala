package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.FailOpen
import org.apache.spark.sql.catalyst.plans.physical.Distribution
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AQEUtils
import org.apache.spark.sql.execution.exchange.EnsureRequirements

/** Keeps how the user wants the query's output distributed (`join.repartition(20, "k")`), for the rules that
  * follow in the same thread: AQE knows it, but does not tell injected rules, and a plan that is rewritten
  * without it can lose the user's number of partitions.
  *
  * Hook: after the planner's strategies, at the first planning and at every re-plan, right before stage
  * preparation. Never changes a plan.
  *
  * Source: `AdaptiveSparkPlanExec.requiredDistribution`.
  */
object RequiredDistribution extends Rule[SparkPlan] {

  private val ofThread = new ThreadLocal[Option[Distribution]] {
    override def initialValue(): Option[Distribution] = None
  }

  override def apply(plan: SparkPlan): SparkPlan = {
    ofThread.set(
      FailOpen("required distribution", Option.empty[Distribution])(
        AQEUtils.getRequiredDistribution(plan)
      )
    )
    plan
  }

  /** Of the plan that this thread prepares. None = the user's repartition is gone from the plan's top in a way
    * that Spark does not honour either.
    */
  def current: Option[Distribution] = ofThread.get()

  /** Spark's rule that adds the shuffles and sorts that operators need, the user's distribution included. */
  def ensureRequirements: EnsureRequirements = EnsureRequirements(current.isDefined, current)
}

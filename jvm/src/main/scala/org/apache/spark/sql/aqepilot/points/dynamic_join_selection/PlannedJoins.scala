package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, JoinStrategy}
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan

/** Notes how each re-plan would run the joins that a policy decided on, to tell later a decision that AQE's
  * cost evaluator refused from one that changed nothing.
  *
  * Hook: query stage preparation, after `OptimizeSkewedJoin`. Never changes a plan; a no-op without policies.
  */
object PlannedJoins extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    PointRule(DynamicJoinSelectionPoint, plan) { _ =>
      plan.foreach { p =>
        JoinStrategy.of(p).foreach { strategy =>
          JoinState.of(p).foreach(JoinMemory.of(_).planned = Some(strategy))
        }
      }
      plan
    }
}

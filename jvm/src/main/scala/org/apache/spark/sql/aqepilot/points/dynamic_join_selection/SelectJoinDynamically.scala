package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.facts.{JoinSide, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.plans.promises.{PlanIntegrity, ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern

/** The decision point `dynamic_join_selection`: puts policies' answers into joins as Spark's own hints.
  *
  * Hook: AQE's logical batch, after Spark's own DynamicJoinSelection or DemoteBroadcastHashJoin. Asked for each
  * side with a finished shuffle, left then right; answered from memory until a fact changes. A side whose
  * answer is null keeps what Spark's rule gave it; once a policy's word was in the plan there, the user's hint is
  * restored and Spark's rule is run anew, because that rule is silent on a side that has a hint.
  *
  * A no-op without policies, for joins without equality keys, and for sides whose shuffle has not run.
  */
object SelectJoinDynamically extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    PointRule(DynamicJoinSelectionPoint, plan, evenUnasked = JoinState.isOverridden(plan)) { at =>
      SparksTasks.note(at.executionId, plan)
      val decided =
        plan.transformDownWithPruning(_.containsPattern(TreePattern.JOIN)) {
          case join: Join => decide(at, join)
        }
      if (PlanIntegrity.differInHintsOnly(plan, decided)) decided
      else throw new IllegalStateException("more than hints would have changed")
    }

  private def decide(at: PointRule[SideHint], join: Join): Join = join match {
    case ExtractEquiJoinKeys(_, _, _, _, _, _, _, _) =>
      val left = JoinSide.of(join.left)
      val right = JoinSide.of(join.right)
      def tables = Some(Tables.joined(join.left, join.right))
      if (left.finished.isEmpty && right.finished.isEmpty) join
      else
        JoinState.of(join) match {
          case Some(state) if state.isReadTwice =>
            if (at.isAsked) ReadTwice.record(at, tables)
            join
          case Some(state) =>
            replanning(at, new ReplannedJoin(state, join, left, right, at.session)).decided
          case None =>
            if (at.isAsked) JoinState.recordUntracked(at, join.joinType, tables)
            join
        }
    case _ => join
  }

  private[dynamic_join_selection] def replanning(
      at: PointRule[SideHint],
      join: ReplannedJoin
  ): JoinReplanning = new JoinReplanning(at, join)
}

package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.facts.{JoinSide, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.plans.promises.ReadTwice
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** The decision point `join_selection`: plans joins as policies say, by Spark's own strategy with hints that
  * mean the same.
  *
  * Hook: planner strategy, before Spark's own, at the first planning and at every re-plan. The plan's hints stay
  * as they are: each planning starts from Spark's choice. A join that a strategy of another extension plans,
  * before or after ours, is that strategy's.
  *
  * A no-op without policies, and for joins of which a side is broadcast already.
  */
object SelectJoin extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case join: Join =>
      def isOpen = !JoinSide.of(join.left).isBroadcast && !JoinSide.of(join.right).isBroadcast
      PointRule(JoinSelectionPoint, Seq.empty[SparkPlan], isOpen)(decide(_, join))
    case _ => Nil
  }

  private def decide(at: PointRule[SelectionDecision], join: Join): Seq[SparkPlan] =
    JoinState.of(join) match {
      case Some(state) if state.isReadTwice =>
        ReadTwice.record(at, Some(tables(join)))
        Nil
      case Some(state) =>
        state.synchronized(new JoinPlanning(at, join, state, tables(join)).planned)
      case None =>
        JoinState.recordUntracked(at, join.joinType, Some(tables(join)))
        Nil
    }

  private def tables(join: Join) = Tables.joined(join.left, join.right)
}

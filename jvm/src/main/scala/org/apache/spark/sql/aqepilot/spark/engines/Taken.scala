package org.apache.spark.sql.aqepilot.spark.engines

import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions}
import org.apache.spark.sql.catalyst.expressions.{Ascending, Expression, SortOrder}
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}

/** Whether the session's engine would run a join whose sides are there already: its own rules are asked, with the join
  * that Spark would give them. Null where there is no engine, and where a side is more than what has run.
  */
final private[aqepilot] class Taken(
    session: Sessions.Classic,
    joinType: JoinType,
    leftKeys: Seq[Expression],
    rightKeys: Seq[Expression],
    condition: Option[Expression],
    left: LogicalPlan,
    right: LogicalPlan
) {

  private lazy val rules = Engine.rules(session)

  private lazy val sides: Option[(SparkPlan, SparkPlan)] =
    if (rules.isEmpty || leftKeys.isEmpty) None
    else for { l <- planned(left); r <- planned(right) } yield (l, r)

  /** Of a shuffled hash join that builds from a side. */
  def asHash(build: BuildSide): Option[Boolean] = asked(StandIn.ShuffledHash) { (l, r) =>
    ShuffledHashJoinExec(leftKeys, rightKeys, joinType, build, condition, l, r)
  }

  /** Of a sort-merge join. */
  lazy val asMerge: Option[Boolean] = asked(StandIn.SortMerge) { (l, r) =>
    SortMergeJoinExec(
      leftKeys,
      rightKeys,
      joinType,
      condition,
      sorted(l, leftKeys),
      sorted(r, rightKeys)
    )
  }

  private def asked(kind: String)(join: (SparkPlan, SparkPlan) => SparkPlan): Option[Boolean] =
    FailOpen("engine", Option.empty[Boolean]) {
      sides.map { case (l, r) =>
        val made = rules.foldLeft(join(l, r))((plan, rule) => rule(plan))
        made.exists(StandIn.join(_).exists(_.kind == kind))
      }
    }

  private def sorted(plan: SparkPlan, keys: Seq[Expression]): SparkPlan =
    SortExec(keys.map(SortOrder(_, Ascending)), global = false, plan)

  /** A side without joins and shuffles of its own: what Spark's planner makes of it stands on its stage. */
  private def planned(side: LogicalPlan): Option[SparkPlan] = side match {
    case stage: LogicalQueryStage => Some(stage.physicalPlan)
    case other
        if other.exists(_.isInstanceOf[LogicalQueryStage]) &&
          !other.exists(_.isInstanceOf[Join]) =>
      session.sessionState.planner.plan(other).take(1).toSeq.headOption
    case _ => None
  }
}

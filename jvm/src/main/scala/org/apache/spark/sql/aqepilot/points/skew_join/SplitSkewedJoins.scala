package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.spark.engines.StandIn
import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.joins.{JoinStage, JoinState}
import org.apache.spark.sql.aqepilot.plans.promises.OtherRules
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec

/** The decision point `skew_join`: splits the partitions of joins as policies say.
  *
  * Hook: query stage preparation, after `OptimizeSkewedJoin`, whose work on a decided join is undone and done
  * again with the decided values. A join without a decision keeps what Spark's rule made of it, and so does one
  * whose decision would take a shuffle that nobody allowed, or whose splits are another extension's.
  *
  * A no-op without policies, and for joins whose stage has shuffles that have not run.
  */
object SplitSkewedJoins extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    PointRule(SkewJoinPoint, plan, plan.exists(p => JoinStage.isSplittable(p) || isTaken(p))) {
      at =>
        if (OtherRules.prepareStages(at.session))
          plan.collectFirst { case join if isTaken(join) => join }.foreach { join =>
            at.undecidedBesideEngine(join.logicalLink.map(Tables.described))
          }
        split(at, plan)
    }

  /** Whether it is a join that an engine has taken before, its shuffles there. */
  private def isTaken(plan: SparkPlan): Boolean =
    StandIn.join(plan).exists(_.kind != StandIn.NestedLoop) &&
      plan.exists(_.isInstanceOf[ShuffleQueryStageExec])

  private def split(at: PointRule[SkewDecision], plan: SparkPlan): SparkPlan = {
    val stages = JoinStage.in(plan)
    stages.filter(s => JoinState.of(s.root).isEmpty).foreach { s =>
      JoinState.recordUntracked(at, s.root.joinType, None)
    }
    lazy val areSparks = !OtherRules.prepareStages(at.session) || SparksSplits.areAll(plan)
    stages.flatMap(s => JoinState.of(s.root)).foldLeft(plan) { (current, root) =>
      JoinStage.in(current).find(s => JoinState.of(s.root).contains(root)).fold(current) { stage =>
        at.failingOpen(current)(new SkewDecisions(at, current, stage, areSparks).decided)
      }
    }
  }
}

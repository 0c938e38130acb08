package org.apache.spark.sql.aqepilot.plans

import org.apache.spark.sql.aqepilot.facts.QueryFacts
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, PruningSides}
import org.apache.spark.sql.aqepilot.plans.promises.{ReadTwice, RequiredDistribution, SparksTasks}
import org.apache.spark.sql.aqepilot.record.PolicyNews
import org.apache.spark.sql.aqepilot.run.PoliciesInForce
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** Gives each join its identity at first planning, and plans nothing.
  *
  * Hook: planner strategy, before Spark's own. A tag set here is on the joins that `IN` and `EXISTS` became and
  * on those that cost-based reordering rebuilt, and at every re-plan; a rule before the optimiser's end misses
  * those. Spark plans a clone of the optimised plan, so the tags are one execution's own.
  */
object JoinIdentity extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    FailOpen("join identity", ())(plan match {
      case ReturnAnswer(root) =>
        FailOpen("policy news", ()) {
          Sessions.active.foreach(s => PolicyNews.tell(s, PoliciesInForce.of(s.sessionState.conf)))
        }
        FailOpen("join identity", ()) {
          if (!root.exists(_.isInstanceOf[Stage])) {
            FailOpen("parts read twice", ())(ReadTwice.mark(root))
            if (root.containsPattern(TreePattern.JOIN)) {
              val prunes = PruningSides.mark(root)
              root.foreach {
                case j: Join => JoinState.start(j, prunes(j))
                case _       =>
              }
            }
          }
          if (root.containsPattern(TreePattern.JOIN)) noteSparksTasks(root)
        }
      case _ =>
    })
    Nil
  }

  private def noteSparksTasks(root: LogicalPlan): Unit =
    if (RequiredDistribution.isWanted) Sessions.active.foreach { session =>
      SparksTasks.note(QueryFacts.executionId(session.sparkContext), root)
    }
}

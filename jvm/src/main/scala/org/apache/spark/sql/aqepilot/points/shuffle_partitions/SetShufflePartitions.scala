package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.aqepilot.spark.engines.StandIn
import org.apache.spark.sql.aqepilot.facts.{PerQuery, Tables}
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, ReadTwice}
import org.apache.spark.sql.aqepilot.plans.shuffles.{ShuffleGroups, ShuffleShapes}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec

/** The decision point `shuffle_partitions`: gives groups of new shuffles a policy's number of partitions.
  *
  * Hook: query stage preparation, at the first planning and at every re-plan, where shuffles that are not
  * started come back with Spark's number. Answers are remembered until a fact changes. A group of which a
  * shuffle is started keeps its number: Spark would shuffle anew what has fewer partitions than its default,
  * and that is taken back. Each changed plan is validated with the user's own distribution; an illegal group
  * keeps Spark's number and leaves the others theirs. A number that another extension's rule gave stays.
  *
  * A no-op without policies, and for shuffles that the user numbered.
  */
object SetShufflePartitions extends Rule[SparkPlan] {

  /** On the shuffles of a group that a policy gave a number: the group's id. */
  val tag: TreeNodeTag[Long] = TreeNodeTag[Long]("aqepilot.shuffle")

  private val answers = new PerQuery(() => new ShuffleAnswers)

  override def apply(plan: SparkPlan): SparkPlan =
    PointRule(ShufflePartitionsPoint, plan) { at =>
      val known = answers(at.executionId)
      val groups = ShuffleGroups.of(plan, known.shapes).filterNot(_.isFixed)
      // Else it was numbered before the engine took it.
      if (OtherRules.prepareStages(at.session))
        plan.collectFirst { case shuffle if StandIn.isShuffle(shuffle) => shuffle }.foreach {
          shuffle =>
            at.undecidedBesideEngine(shuffle.logicalLink.map(Tables.described))
        }
      if (groups.isEmpty) plan
      else if (ReadTwice.isInQuery(plan)) {
        if (!plan.exists(_.isInstanceOf[QueryStageExec]))
          ReadTwice.record(at, plan.logicalLink.map(Tables.described))
        plan
      } else new ShuffleDecisions(at, plan, known).decided(groups)
    }
}

/** What is remembered of a query: the answers, each with its group's id. */
final private class ShuffleAnswers {
  val byKey = new ConcurrentHashMap[PointRule.Key, (Long, Asked[Int])]
  val shapes = new ShuffleShapes
}

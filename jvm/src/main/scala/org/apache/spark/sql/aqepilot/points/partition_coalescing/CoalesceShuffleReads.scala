package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.promises.ReadTwice
import org.apache.spark.sql.aqepilot.plans.shuffles.CoalesceGroups
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadRule, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ShuffleOrigin

/** The decision point `partition_coalescing`: reads a stage's finished shuffles with the tasks that policies
  * decide on.
  *
  * Hook: query stage optimizer, after Spark's OptimizeSkewInRebalancePartitions, CoalesceShufflePartitions and
  * OptimizeShuffleWithLocalRead. Their work on the group is undone and done again with the decided values. As
  * an AQEShuffleReadRule it is checked by AQE as they are: a result that would need another shuffle is dropped.
  *
  * A group whose reads another extension's rule has changed stays as that rule left it, and a stage in [[ReadTwice]]
  * as Spark left it.
  *
  * A no-op, down to the plan object, without policies, for stages that read no shuffle, and on null.
  */
object CoalesceShuffleReads extends Rule[SparkPlan] with AQEShuffleReadRule {

  override def supportedShuffleOrigins: Seq[ShuffleOrigin] = CoalesceGroups.origins

  override def apply(plan: SparkPlan): SparkPlan = {
    def concerns = plan.exists(_.isInstanceOf[ShuffleQueryStageExec])
    PointRule(PartitionCoalescingPoint, plan, concerns) { at =>
      if (ReadTwice.isIn(plan)) {
        ReadTwice.record(at, plan.logicalLink.map(Tables.described))
        plan
      } else new CoalescingDecisions(at, plan).decided
    }
  }
}

package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.facts.QueryFacts
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions}
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, UnspecifiedDistribution}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec

/** Marks the root of each prepared plan with the distribution that the query's author wants there. A rule for
  * stages does not know which of them is the final one. Marks the stages whose tasks stay Spark's, too ([[SparksTasks]]).
  *
  * Hook: query stage preparation, the last of ours, after all that may replace the root. Never changes a plan; a no-op without
  * policies whose decisions change how rows are distributed. The mark is of Spark's own classes, because plans travel to executors.
  */
object FinalStage extends Rule[SparkPlan] {

  private val tag = TreeNodeTag[Option[Distribution]]("aqepilot.final")

  override def apply(plan: SparkPlan): SparkPlan = {
    FailOpen("final stage", ()) {
      if (RequiredDistribution.isWanted) {
        plan.setTagValue(tag, RequiredDistribution.current)
        Sessions.active.foreach(s => SparksTasks.mark(QueryFacts.executionId(s.sparkContext), plan))
      }
    }
    RequiredDistribution.done()
    plan
  }

  def is(stage: SparkPlan): Boolean = mark(stage).isDefined

  /** What the plan of a stage has to keep. */
  def required(stage: SparkPlan): Distribution =
    mark(stage).flatten.getOrElse(UnspecifiedDistribution)

  /** Spark's rules may have put a read over a root that is a shuffle. */
  private def mark(stage: SparkPlan): Option[Option[Distribution]] = stage match {
    case AQEShuffleReadExec(shuffle, _) => shuffle.getTagValue(tag)
    case other                          => other.getTagValue(tag)
  }
}

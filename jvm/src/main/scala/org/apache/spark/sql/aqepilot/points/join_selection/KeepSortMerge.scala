package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords.ShuffleMerge
import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.plans.promises.{
  OtherRules,
  PhysicalIntegrity,
  RequiredDistribution,
  Rewritten
}
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.{FailOpen, SparkJoinRules}
import org.apache.spark.sql.catalyst.expressions.SortOrder
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.physical.UnspecifiedDistribution
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}

/** Takes back what 4.3 makes of a sort-merge join that a `join_selection` policy asked for.
  *
  * Hook: query stage preparation, after `ConvertSortMergeJoinToShuffledHashJoin`, which spares a join with a
  * SHUFFLE_MERGE hint only; ours is not in the logical plan. Never changes another join, nor what another
  * extension's rule has converted: no rule of Spark's does it before 4.3.
  */
object KeepSortMerge extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    PointRule(JoinSelectionPoint, plan, SparkJoinRules.conversionEnabled(conf).nonEmpty) { at =>
      val kept = plan.transformUp { case j: ShuffledHashJoinExec if isWanted(j) => merged(j) }
      if (kept eq plan) plan
      else {
        // Only compared.
        def redone = SparkJoinRules.convert(kept, RequiredDistribution.ensureRequirements)
        // Another extension's rule may have replaced the joins.
        if (OtherRules.prepareStages(at.session) && converted(redone) != converted(plan)) plan
        else checked(plan, kept)
      }
    }

  /** The sort-merge join of the same sides. What is above may rely on the order of the hash join's streamed side. */
  private def merged(j: ShuffledHashJoinExec): SparkPlan = {
    val join = SortMergeJoinExec(
      j.leftKeys,
      j.rightKeys,
      j.joinType,
      j.condition,
      j.left,
      j.right,
      j.isSkewJoin
    )
    val sides = join.children.zip(join.requiredChildOrdering).map { case (c, o) => sorted(c, o) }
    val kept = join.withNewChildren(sides)
    kept.copyTagsFrom(j)
    sorted(kept, j.outputOrdering)
  }

  private def sorted(plan: SparkPlan, order: Seq[SortOrder]): SparkPlan =
    if (SortOrder.orderingSatisfies(plan.outputOrdering, order)) plan
    else SortExec(order, global = false, plan)

  private def checked(plan: SparkPlan, kept: SparkPlan): SparkPlan = {
    val joins = plan.collect { case j: ShuffledHashJoinExec if isWanted(j) => j }
    val required = RequiredDistribution.current.getOrElse(UnspecifiedDistribution)
    PhysicalIntegrity.fault(plan, kept, Rewritten(joins = joins), required) match {
      case None      => kept
      case Some(why) =>
        FailOpen.fault(JoinSelectionPoint.name, why)
        plan
    }
  }

  private def converted(plan: SparkPlan): Set[(Long, BuildSide)] = plan.collect {
    case j: ShuffledHashJoinExec if isWanted(j) => JoinState.of(j).map(s => (s.id, j.buildSide))
  }.flatten.toSet

  private def isWanted(join: ShuffledHashJoinExec): Boolean =
    JoinState.of(join).flatMap(_.selected).exists(_.strategy == ShuffleMerge)
}

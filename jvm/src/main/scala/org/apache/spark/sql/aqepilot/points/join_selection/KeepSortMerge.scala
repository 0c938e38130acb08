package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.doors.SparkJoinRules
import org.apache.spark.sql.aqepilot.plans.{JoinState, OtherRules, RequiredDistribution}
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}

import io.aqepilot.joins.JoinWords.ShuffleMerge
import io.aqepilot.points.join_selection.JoinSelectionPoint

/** Takes back what 4.3 makes of a sort-merge join that a `join_selection` policy asked for.
  *
  * Hook: query stage preparation, after `ConvertSortMergeJoinToShuffledHashJoin`, which spares a join with a
  * SHUFFLE_MERGE hint only; ours is not in the logical plan. Never changes another join, nor what another
  * extension's rule has converted: no rule of Spark's does it before 4.3.
  */
object KeepSortMerge extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    PointRule(JoinSelectionPoint, plan, SparkJoinRules.conversionEnabled(conf).nonEmpty) { at =>
      val kept = plan.transformUp {
        case j: ShuffledHashJoinExec if isWanted(j) =>
          SortMergeJoinExec(
            j.leftKeys,
            j.rightKeys,
            j.joinType,
            j.condition,
            j.left,
            j.right,
            j.isSkewJoin
          )
      }
      if (kept eq plan) plan
      else {
        val ensured = RequiredDistribution.ensureRequirements(kept)
        def redone = SparkJoinRules.convert(ensured, RequiredDistribution.ensureRequirements)
        // Another extension's rule may have replaced the joins.
        if (OtherRules.prepareStages(at.session) && converted(redone) != converted(plan)) plan
        else ensured
      }
    }

  private def converted(plan: SparkPlan): Set[(Long, BuildSide)] = plan.collect {
    case j: ShuffledHashJoinExec if isWanted(j) => JoinState.of(j).map(s => (s.id, j.buildSide))
  }.flatten.toSet

  private def isWanted(join: ShuffledHashJoinExec): Boolean =
    JoinState.of(join).flatMap(_.selection.inForce).exists(_.strategy == ShuffleMerge)
}

package io.aqepilot

import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.sql.aqepilot.{Health, Registered, SqlFunctions, Start}
import org.apache.spark.sql.aqepilot.rewrite.{
  FinalStage,
  JoinIdentity,
  KeepSortMerge,
  MatchingReads,
  PlannedJoins,
  ReorderJoins,
  RequiredDistribution,
  SelectJoin,
  SelectJoinDynamically,
  SetShufflePartitions,
  SplitSkewedJoins,
  StageRule
}
import org.apache.spark.sql.catalyst.FunctionIdentifier

import io.aqepilot.decision.Need
import io.aqepilot.policy.AqePilotBytes

/** The Spark SQL extension: `spark.sql.extensions=io.aqepilot.AqePilotExtension`.
  *
  * {{{
  *   analysed plan
  *      | optimiser, before costs   ReorderJoins            join_reorder, after Spark's own rule
  *      v
  *   optimised plan
  *      | planner strategy          JoinIdentity            names each join, keeps the user's hint; plans nothing
  *      |                         SelectJoin              join_selection, by Spark's own strategy
  *      v
  *      | after the planner         RequiredDistribution    keeps the user's repartition in mind; changes nothing
  *   physical plan -> stages run -> a stage finishes -> re-plan:
  *      | AQE logical rule          SelectJoinDynamically   dynamic_join_selection, after Spark's own rule
  *      | stage preparation         KeepSortMerge           join_selection, what 4.3 would convert
  *      |                           SplitSkewedJoins        skew_join, after Spark's own rule
  *      |                           SetShufflePartitions    shuffle_partitions, at first planning too
  *      |                           PlannedJoins            notes what the re-plan would run; changes nothing
  *      |                           FinalStage              marks the plan's root; changes nothing
  *      | cost evaluator            PolicyCostEvaluator     cost_evaluation
  *      v
  *   adopted or refused by cost -> a stage is about to run:
  *      | stage optimizer           CoalesceShuffleReads    partition_coalescing, after Spark's own rules
  *      |                           MatchingReads           a split join's sides are read alike, or in whole
  *      v
  *   ... -> final plan -> fates (listener)
  * }}}
  */
class AqePilotExtension extends SparkSessionExtensionsProvider {

  /** A jar of another Spark minor registers the SQL functions alone: `aqepilot_status()` says what is wrong. */
  override def apply(extensions: SparkSessionExtensions): Unit = Start {
    functions(extensions)
    if (Health.isRightJar) rules(extensions)
  }

  private def rules(extensions: SparkSessionExtensions): Unit = {
    import Registered.{logical, physical, strategy}
    extensions.injectPreCBORule(_ => logical(ReorderJoins))
    extensions.injectPlannerStrategy(_ => strategy(JoinIdentity))
    extensions.injectPlannerStrategy(_ => strategy(SelectJoin))
    if (Health.missing(Need.ofRequiredDistribution).isEmpty)
      extensions.injectQueryPostPlannerStrategyRule(_ => physical(RequiredDistribution))
    extensions.injectRuntimeOptimizerRule(_ => logical(SelectJoinDynamically))
    extensions.injectQueryStagePrepRule(_ => physical(KeepSortMerge))
    extensions.injectQueryStagePrepRule(_ => physical(SplitSkewedJoins))
    extensions.injectQueryStagePrepRule(_ => physical(SetShufflePartitions))
    extensions.injectQueryStagePrepRule(_ => physical(PlannedJoins))
    extensions.injectQueryStagePrepRule(_ => physical(FinalStage))
    extensions.injectQueryStageOptimizerRule(_ => physical(StageRule()))
    extensions.injectQueryStageOptimizerRule(_ => physical(MatchingReads))
  }

  private def functions(extensions: SparkSessionExtensions): Unit = {
    extensions.injectFunction(
      (
        FunctionIdentifier(AqePilotBytes.name),
        AqePilotBytes.info,
        args => AqePilotBytes.build(args.toSeq)
      )
    )
    SqlFunctions.all.foreach { f =>
      extensions.injectTableFunction((f.identifier, f.info, args => f.build(args.toSeq)))
    }
  }
}

package io.aqepilot

import org.apache.spark.sql.aqepilot.Start
import org.apache.spark.sql.aqepilot.decision.DecisionPoints.{
  DynamicJoinSelection,
  JoinReorder,
  JoinSelection,
  PartitionCoalescing,
  ShufflePartitions,
  SkewJoin,
  WriteDistribution
}
import org.apache.spark.sql.aqepilot.decision.{Health, Need}
import org.apache.spark.sql.aqepilot.plans.JoinIdentity
import org.apache.spark.sql.aqepilot.plans.promises.{
  FinalStage,
  MatchingReads,
  RequiredDistribution
}
import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.{
  PlannedJoins,
  SelectJoinDynamically
}
import org.apache.spark.sql.aqepilot.points.join_reorder.ReorderJoins
import org.apache.spark.sql.aqepilot.points.join_selection.{KeepSortMerge, SelectJoin}
import org.apache.spark.sql.aqepilot.points.partition_coalescing.StageRule
import org.apache.spark.sql.aqepilot.points.shuffle_partitions.SetShufflePartitions
import org.apache.spark.sql.aqepilot.points.skew_join.SplitSkewedJoins
import org.apache.spark.sql.aqepilot.points.write_distribution.{
  DistributeV2Writes,
  DistributeWrites
}
import org.apache.spark.sql.aqepilot.policy.sql.{AqePilotBytes, ScalarFunction}
import org.apache.spark.sql.aqepilot.rule.Registered.at
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.aqepilot.sql.{AqePilotAnswer, SqlFunctions}
import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.slf4j.LoggerFactory

/** The Spark SQL extension: `spark.sql.extensions=io.aqepilot.AqePilotExtension`.
  *
  * {{{
  *   analysed plan
  *      | optimiser, before costs   ReorderJoins            join_reorder, after Spark's own rule
  *      |                           DistributeWrites        write_distribution, before Spark sorts for a write
  *      v
  *   optimised plan
  *      | planner strategy          JoinIdentity            names each join, keeps the user's hint; plans nothing
  *      |                         SelectJoin              join_selection, by Spark's own strategy
  *      |                         DistributeV2Writes      write_distribution, for tables of the DataSource V2 interface
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
  override def apply(extensions: SparkSessionExtensions): Unit =
    try
      Start {
        functions(extensions)
        if (Health.isRightJar) rules(extensions)
      }
    catch {
      case e: LinkageError =>
        log.warn("aqepilot does not fit this Spark and is off (INTERNAL_ERROR): " + e)
    }

  // Where Spark's Scala is not the jar's, not even FailOpen may link.
  private def log = LoggerFactory.getLogger("io.aqepilot.AqePilotExtension")

  private def rules(spark: SparkSessionExtensions): Unit = {
    at(JoinReorder)(r => spark.injectPreCBORule(_ => r.logical(ReorderJoins)))
    at(WriteDistribution)(r => spark.injectPreCBORule(_ => r.logical(DistributeWrites)))
    at(JoinSelection, DynamicJoinSelection, SkewJoin) { r =>
      spark.injectPlannerStrategy(_ => r.strategy(JoinIdentity))
    }
    at(JoinSelection)(r => spark.injectPlannerStrategy(_ => r.strategy(SelectJoin)))
    at(WriteDistribution)(r =>
      spark.injectPlannerStrategy(_ => r.strategy(DistributeV2Writes))
    )
    if (Health.missing(Need.ofRequiredDistribution).isEmpty)
      at(ShufflePartitions, SkewJoin, PartitionCoalescing) { r =>
        spark.injectQueryPostPlannerStrategyRule(_ => r.physical(RequiredDistribution))
      }
    at(DynamicJoinSelection) { r =>
      spark.injectRuntimeOptimizerRule(_ => r.logical(SelectJoinDynamically))
    }
    at(JoinSelection)(r => spark.injectQueryStagePrepRule(_ => r.physical(KeepSortMerge)))
    at(SkewJoin)(r => spark.injectQueryStagePrepRule(_ => r.physical(SplitSkewedJoins)))
    at(ShufflePartitions) { r =>
      spark.injectQueryStagePrepRule(_ => r.physical(SetShufflePartitions))
    }
    if (Health.isLinked(DynamicJoinSelection))
      at()(r => spark.injectQueryStagePrepRule(_ => r.physical(PlannedJoins)))
    at(PartitionCoalescing)(r => spark.injectQueryStagePrepRule(_ => r.physical(FinalStage)))
    at(PartitionCoalescing)(r => spark.injectQueryStageOptimizerRule(_ => r.physical(StageRule())))
    at(SkewJoin, PartitionCoalescing)(r =>
      spark.injectQueryStageOptimizerRule(_ => r.physical(MatchingReads))
    )
  }

  private def functions(spark: SparkSessionExtensions): Unit = {
    def scalar(f: => ScalarFunction): Unit = FailOpen("hook", ()) {
      spark.injectFunction((f.identifier, f.info, args => f.build(args.toSeq)))
    }
    scalar(AqePilotBytes)
    scalar(AqePilotAnswer)
    SqlFunctions.all.foreach { f =>
      FailOpen("hook", ()) {
        spark.injectTableFunction((f.identifier, f.info, args => f.build(args.toSeq)))
      }
    }
  }
}

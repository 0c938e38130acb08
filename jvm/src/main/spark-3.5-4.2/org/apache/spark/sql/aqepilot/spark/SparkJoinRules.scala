package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.catalyst.plans.logical.{
  Join,
  JoinStrategyHint,
  LogicalPlan,
  PREFER_SHUFFLE_HASH
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{DynamicJoinSelection, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.EnsureRequirements
import org.apache.spark.sql.internal.SQLConf

/** Spark's own run-time join rules in 3.5 to 4.2.
  *
  * 4.3 took DynamicJoinSelection apart: the demotion of broadcasts is a rule of its own, and the preference
  * for a shuffled hash join moved from a hint (PREFER_SHUFFLE_HASH, gone there) to the physical plan.
  */
object SparkJoinRules {

  /** Gives hints to joins, by the sizes of their finished sides. */
  def rule: Rule[LogicalPlan] = DynamicJoinSelection

  /** What the physical conversion of 4.3 would do: there is none. */
  def conversion(
      join: Join,
      left: Option[ShuffleQueryStageExec],
      right: Option[ShuffleQueryStageExec]
  ): Option[String] = None

  /** A prepared plan with its sort-merge joins converted as Spark's rule would: as it is. */
  def convert(plan: SparkPlan, ensure: EnsureRequirements): SparkPlan = plan

  /** The hint that stands for PREFER_SHUFFLE_HASH on a join with these hints otherwise. */
  def preferShuffleHash(join: Join, conf: SQLConf): Option[JoinStrategyHint] =
    Some(PREFER_SHUFFLE_HASH)

  /** `spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled`: not there. */
  def conversionEnabled(conf: SQLConf): Option[Boolean] = None
}

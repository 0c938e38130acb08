package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.catalyst.plans.logical.{
  Join,
  JoinHint,
  JoinStrategyHint,
  PREFER_SHUFFLE_HASH
}
import org.apache.spark.sql.execution.adaptive.{DynamicJoinSelection, ShuffleQueryStageExec}
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.decision.Need

/** Spark's own run-time join rules in 3.5 to 4.2.
  *
  * 4.3 took DynamicJoinSelection apart: the demotion of broadcasts is a rule of its own, and the preference
  * for a shuffled hash join moved from a hint (PREFER_SHUFFLE_HASH, gone there) to the physical plan.
  */
object SparkJoinRules {

  val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.DynamicJoinSelection"),
    Need("org.apache.spark.sql.catalyst.plans.logical.PREFER_SHUFFLE_HASH$")
  )

  /** Name of the rule that `spark.sql.adaptive.optimizer.excludedRules` would hold. */
  val ruleName: String = DynamicJoinSelection.ruleName

  /** The hints that Spark's own rule gives to a join. */
  def hints(join: Join): JoinHint = DynamicJoinSelection(join) match {
    case j: Join => j.hint
    case _       => join.hint
  }

  /** What the physical conversion of 4.3 would do: there is none. */
  def conversion(
      join: Join,
      left: Option[ShuffleQueryStageExec],
      right: Option[ShuffleQueryStageExec]
  ): Option[String] = None

  /** The hint that stands for PREFER_SHUFFLE_HASH on a join with these hints otherwise. */
  def preferShuffleHash(join: Join, conf: SQLConf): Option[JoinStrategyHint] =
    Some(PREFER_SHUFFLE_HASH)

  /** `spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled`: not there. */
  def conversionEnabled(conf: SQLConf): Option[Boolean] = None
}

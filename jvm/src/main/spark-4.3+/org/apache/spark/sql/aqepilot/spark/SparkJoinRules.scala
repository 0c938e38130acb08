package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, JoinSelectionHelper}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{
  Join,
  JoinStrategyHint,
  LogicalPlan,
  SHUFFLE_HASH
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{
  ConvertSortMergeJoinToShuffledHashJoin,
  DemoteBroadcastHashJoin,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.exchange.EnsureRequirements
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.internal.SQLConf

/** Spark's own run-time join rules from 4.3 on.
  *
  * 4.3 took DynamicJoinSelection apart: the demotion of broadcasts is a rule of its own, and the preference
  * for a shuffled hash join moved from a hint (PREFER_SHUFFLE_HASH, gone) to the physical plan, per join.
  */
object SparkJoinRules extends JoinSelectionHelper {

  /** Gives hints to joins, by the sizes of their finished sides. */
  def rule: Rule[LogicalPlan] = DemoteBroadcastHashJoin

  /** Which side Spark would build from if it turned a sort-merge join here into a shuffled hash join: its own
    * rule, run on a sort-merge join of the two finished stages.
    *
    * None when a side's stage is not a finished one that stands alone: what is planned above it is not known.
    */
  def conversion(
      join: Join,
      left: Option[ShuffleQueryStageExec],
      right: Option[ShuffleQueryStageExec]
  ): Option[String] =
    for {
      l <- left
      r <- right
      (leftKeys, rightKeys, condition) <- keys(join)
    } yield {
      val planned =
        SortMergeJoinExec(leftKeys, rightKeys, join.joinType, condition, l, r)
      planned.setLogicalLink(join)
      ConvertSortMergeJoinToShuffledHashJoin(EnsureRequirements())(planned) match {
        case c: ShuffledHashJoinExec => if (c.buildSide == BuildLeft) "LEFT" else "RIGHT"
        case p                       =>
          p.collectFirst { case c: ShuffledHashJoinExec =>
            if (c.buildSide == BuildLeft) "LEFT" else "RIGHT"
          }.getOrElse("NONE")
      }
    }

  /** A prepared plan with its sort-merge joins converted as Spark's rule would. */
  def convert(plan: SparkPlan, ensure: EnsureRequirements): SparkPlan =
    ConvertSortMergeJoinToShuffledHashJoin(ensure)(plan)

  private def keys(join: Join) = join match {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, condition, _, _, _, _) =>
      Some((leftKeys, rightKeys, condition))
    case _ => None
  }

  /** PREFER_SHUFFLE_HASH as it was: a broadcast by size comes first, then this hint is as good as
    * SHUFFLE_HASH.
    */
  def preferShuffleHash(join: Join, conf: SQLConf): Option[JoinStrategyHint] =
    if (getBroadcastBuildSide(join, hintOnly = false, conf).isDefined) None else Some(SHUFFLE_HASH)

  def conversionEnabled(conf: SQLConf): Option[Boolean] =
    Some(conf.getConf(SQLConf.ADAPTIVE_CONVERT_SORT_MERGE_JOIN_TO_SHUFFLED_HASH_JOIN_ENABLED))
}

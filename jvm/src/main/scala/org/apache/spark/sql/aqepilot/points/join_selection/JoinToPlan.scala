package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.facts.Estimates
import org.apache.spark.sql.aqepilot.plans.joins.{JoinFacts, JoinState, JoinStrategy, KeyedJoin}
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.planning.ExtractSingleColumnNullAwareAntiJoin
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** A join that is being planned.
  *
  * @param planned
  *   what Spark's own strategy makes of it
  */
final private class JoinToPlan(
    state: JoinState,
    logical: Join,
    val conf: SQLConf,
    planned: => Option[SparkPlan]
) extends KeyedJoin(state, logical) {

  val left = new PlannedSide(this, isLeft = true)
  val right = new PlannedSide(this, isLeft = false)

  /** Whether the query runs already. */
  val isReplan: Boolean = JoinState.isReplan(logical)

  /** All that an answer depends on, beside the settings. */
  def version: Product = (left.version, right.version, logical.hint, joinType, isReplan)

  lazy val isNullAware: Boolean = logical match {
    case ExtractSingleColumnNullAwareAntiJoin(_, _) => true
    case _                                          => false
  }

  /** 4.0's join of a scalar subquery: at most one row on the right side. */
  def isSingle: Boolean = JoinFacts.name(joinType) == "LEFT SINGLE"

  def canMerge: Boolean = leftKeys.nonEmpty && !isSingle && RowOrdering.isOrderable(leftKeys)

  /** What Spark makes of it. */
  lazy val spark: Option[Selection] = planned.flatMap(JoinStrategy.selection)

  /** Which of its reasons Spark had, in the order in which `JoinSelection` comes to them. */
  def sparkReason: Option[String] = spark.map { selection =>
    def words(hint: JoinHint) = Seq(hint.leftHint, hint.rightHint).flatMap(JoinState.word(_))
    def isSmall = selection.buildSide.exists(side =>
      Estimates.broadcasts(if (side == BuildLeft) logical.left else logical.right, conf)
    )
    if (words(state.userHint).contains(selection.strategy)) "HINT"
    else if (words(logical.hint).exists(_.endsWith(selection.strategy))) "RUN_TIME"
    else
      selection.strategy match {
        case Broadcast if isNullAware => "NULL_AWARE"
        case Broadcast if isSmall     => "SIZE"
        case Broadcast                => "LAST_RESORT"
        case ShuffleHash              => "MUCH_SMALLER"
        case ShuffleMerge             => "SORTABLE"
        case _                        => "CROSS"
      }
  }
}

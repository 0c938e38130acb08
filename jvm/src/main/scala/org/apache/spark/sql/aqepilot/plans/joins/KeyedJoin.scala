package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

/** What is known of a join at each point that decides on one. */
trait KnownJoin {
  def state: JoinState
  def joinType: JoinType
  def leftKeys: Seq[Expression]

  /** Beside the equality keys. */
  def condition: Option[Expression]
}

/** A join of which a policy may choose the strategy, and its equality keys; a join may have none. */
class KeyedJoin(val state: JoinState, val logical: Join) extends KnownJoin {

  private lazy val parts: (Seq[Expression], Seq[Expression], Option[Expression]) = logical match {
    case ExtractEquiJoinKeys(_, left, right, beside, _, _, _, _) => (left, right, beside)
    case _                                                       => (Nil, Nil, logical.condition)
  }

  override def joinType: JoinType = logical.joinType

  override def leftKeys: Seq[Expression] = parts._1

  def rightKeys: Seq[Expression] = parts._2

  override def condition: Option[Expression] = parts._3

  def shape: JoinShape = JoinShape(joinType, rightKeys, condition, logical.children)

  lazy val isHashable: Boolean = leftKeys.nonEmpty && Sessions.hashable(leftKeys, rightKeys)
}

/** A side of such a join. */
trait KeyedSide {
  def join: KeyedJoin
  def isLeft: Boolean

  /** Whether Spark without us would broadcast it. */
  def isBroadcastBySpark: Boolean

  def plan: LogicalPlan = if (isLeft) join.logical.left else join.logical.right

  /** Whether the join's type lets it be broadcast. */
  def typeLetsBroadcast: Boolean =
    if (isLeft) BuildSides.canBuildBroadcastLeft(join.joinType)
    else BuildSides.canBuildBroadcastRight(join.joinType)

  def canShuffleHash: Boolean = join.isHashable &&
    (if (isLeft) BuildSides.canBuildShuffledHashJoinLeft(join.joinType)
     else BuildSides.canBuildShuffledHashJoinRight(join.joinType))

  /** Whether Spark broadcasts it, and prunes partitions by that ([[PruningSides]]). */
  def prunes: Boolean =
    join.state.prunes.isAwaited(join.logical, isLeft) && isBroadcastBySpark
}

private object BuildSides extends JoinSelectionHelper

package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, JoinSide, LazyRow, QueryFacts}
import org.apache.spark.sql.aqepilot.plans.promises.CanThrow
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow, RowOrdering}
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.catalyst.plans.logical.JoinHint
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}
import org.apache.spark.sql.internal.SQLConf

/** The facts of `dynamic_join_selection`, in the order of its schema.
  *
  * @param prunes
  *   whether Spark broadcasts a side, the left one or the right one, and prunes partitions by it
  */
final class JoinFacts(
    state: JoinState,
    joinType: JoinType,
    leftKeys: Seq[Expression],
    rightKeys: Seq[Expression],
    condition: Option[Expression],
    left: JoinSide,
    right: JoinSide,
    sparkHint: => JoinHint,
    conversion: => Option[String],
    prunes: Boolean => Boolean
) extends JoinSelectionHelper {

  private lazy val hashable = Sessions.hashable(leftKeys, rightKeys)

  private def sideRow(isLeft: Boolean): InternalRow =
    if (isLeft)
      left.row(
        isLeft,
        canBuildBroadcastLeft(joinType),
        canBuildShuffledHashJoinLeft(joinType) && hashable,
        prunes(isLeft)
      )
    else
      right.row(
        isLeft,
        canBuildBroadcastRight(joinType),
        canBuildShuffledHashJoinRight(joinType) && hashable,
        prunes(isLeft)
      )

  private lazy val leftRow = sideRow(isLeft = true)
  private lazy val rightRow = sideRow(isLeft = false)

  private def joinRow: InternalRow = new GenericInternalRow(
    Array[Any](
      state.id,
      QueryFacts.string(JoinFacts.name(joinType)),
      leftKeys.length,
      QueryFacts.strings(leftKeys.map(_.dataType.sql.toLowerCase(java.util.Locale.ROOT))),
      RowOrdering.isOrderable(leftKeys),
      condition.isDefined,
      condition.exists(CanThrow(_)),
      JoinState.word(state.userHint.leftHint).map(QueryFacts.string).orNull,
      JoinState.word(state.userHint.rightHint).map(QueryFacts.string).orNull,
      QueryFacts.strings(
        FaultShapes.met(JoinShape(joinType, rightKeys, condition, Seq(left.plan, right.plan)))
      ),
      state.prunes.isInSide
    )
  )

  /** The facts row for one side. */
  def row(
      sc: SparkContext,
      conf: SQLConf,
      executionId: Option[Long],
      isLeft: Boolean
  ): LazyRow = {
    def spark = LazyRow(
      () => {
        val hint = if (isLeft) sparkHint.leftHint else sparkHint.rightHint
        JoinState.word(hint).map(QueryFacts.string).orNull
      },
      () => conversion.map(QueryFacts.string).orNull
    )
    LazyRow(
      () => QueryFacts.query(sc, executionId),
      () => CommonFacts.conf(conf),
      () => QueryFacts.cluster(sc),
      () => joinRow,
      () => if (isLeft) leftRow else rightRow,
      () => if (isLeft) rightRow else leftRow,
      () => spark
    )
  }
}

object JoinFacts {

  /** Spark's SQL name of a join type, e.g. `LEFT OUTER`. */
  def name(joinType: JoinType): String = joinType match {
    case _: ExistenceJoin => "EXISTENCE"
    case other            => other.sql
  }
}

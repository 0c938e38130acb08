package org.apache.spark.sql.aqepilot.points.join_selection

import java.util.Locale

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.decision.JoinWords.{BuildLeft => LEFT, BuildRight => RIGHT, _}
import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  Estimates,
  LazyRow,
  PlannedSide,
  QueryFacts
}
import org.apache.spark.sql.aqepilot.plans.joins.{
  FaultShapes,
  JoinFacts,
  JoinShape,
  JoinState,
  JoinStrategy
}
import org.apache.spark.sql.aqepilot.plans.promises.CanThrow
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.RowOrdering
import org.apache.spark.sql.catalyst.optimizer.{
  BuildLeft,
  BuildRight,
  BuildSide,
  JoinSelectionHelper
}
import org.apache.spark.sql.catalyst.planning.{
  ExtractEquiJoinKeys,
  ExtractSingleColumnNullAwareAntiJoin
}
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** The facts of `join_selection` on one join, in the order of its schema.
  *
  * @param planned
  *   what Spark's own strategy makes of it
  */
final class SelectionFacts(
    state: JoinState,
    join: Join,
    conf: SQLConf,
    isReplan: Boolean,
    planned: => Option[SparkPlan]
) extends JoinSelectionHelper {

  private val (leftKeys, rightKeys, besideKeys) = join match {
    case ExtractEquiJoinKeys(_, l, r, other, _, _, _, _) => (l, r, other)
    case _                                               => (Nil, Nil, join.condition)
  }

  private lazy val isNullAware = join match {
    case ExtractSingleColumnNullAwareAntiJoin(_, _) => true
    case _                                          => false
  }

  private lazy val spark: Option[Selection] = planned.flatMap(JoinStrategy.selection)

  /** 4.0's join of a scalar subquery: at most one row on the right side. */
  private def isSingle = JoinFacts.name(join.joinType) == "LEFT SINGLE"

  private lazy val hashable = leftKeys.nonEmpty && Sessions.hashable(leftKeys, rightKeys)

  private def runTimeHint(now: Option[HintInfo], users: Option[HintInfo]) =
    JoinState.word(now).filterNot(JoinState.word(users).contains)

  private val left = new PlannedSide(
    join.left,
    leftKeys,
    runTimeHint(join.hint.leftHint, state.userHint.leftHint)
  )
  private val right = new PlannedSide(
    join.right,
    rightKeys,
    runTimeHint(join.hint.rightHint, state.userHint.rightHint)
  )

  lazy val settings: InternalRow = CommonFacts.conf(conf)

  /** All that an answer depends on, beside the settings. */
  def version: Product = (left.version, right.version, join.hint, join.joinType, isReplan)

  private def admits(of: LogicalPlan, other: LogicalPlan, build: BuildSide) = {
    val isLeft = build == BuildLeft
    PlannedSide.Admits(
      broadcast =
        if (isNullAware) !isLeft
        else if (leftKeys.isEmpty) !isLeft || !isSingle
        else
          hashable &&
          (if (isLeft) canBuildBroadcastLeft(join.joinType)
           else canBuildBroadcastRight(join.joinType)),
      shuffleHash = hashable &&
        (if (isLeft) canBuildShuffledHashJoinLeft(join.joinType)
         else canBuildShuffledHashJoinRight(join.joinType)),
      broadcastsBySize = Estimates.broadcasts(of, conf),
      hashesBySize =
        Estimates.of(of).sizeInBytes < conf.autoBroadcastJoinThreshold * conf.numShufflePartitions,
      isMuchSmaller =
        Estimates.of(of).sizeInBytes * conf.getConf(SQLConf.SHUFFLE_HASH_JOIN_FACTOR) <=
          Estimates.of(other).sizeInBytes,
      prunes = state.prunes.isAwaited(join, isLeft) &&
        spark.contains(Selection(Broadcast, Some(if (isLeft) LEFT else RIGHT)))
    )
  }

  private def joinRow = LazyRow(
    () => state.id,
    () => QueryFacts.string(JoinFacts.name(join.joinType)),
    () => leftKeys.length,
    () => QueryFacts.strings(leftKeys.map(_.dataType.sql.toLowerCase(Locale.ROOT))),
    () =>
      leftKeys.nonEmpty && !isSingle && RowOrdering.isOrderable(leftKeys),
    () => besideKeys.isDefined,
    () => besideKeys.exists(CanThrow(_)),
    () => join.condition.map(c => QueryFacts.string(c.sql)).orNull,
    () => isNullAware,
    () => JoinState.word(state.userHint.leftHint).map(QueryFacts.string).orNull,
    () => JoinState.word(state.userHint.rightHint).map(QueryFacts.string).orNull,
    () => isReplan,
    () =>
      QueryFacts.strings(
        FaultShapes.met(JoinShape(join.joinType, rightKeys, besideKeys, join.children))
      ),
    () => state.prunes.isInSide
  )

  private def sparkRow = LazyRow(
    () => spark.map(s => QueryFacts.string(s.strategy)).orNull,
    () => spark.flatMap(_.buildSide).map(QueryFacts.string).orNull,
    () => spark.map(s => QueryFacts.string(reason(s))).orNull
  )

  /** Which of its reasons Spark had, in the order in which `JoinSelection` comes to them. */
  private def reason(selection: Selection): String = {
    val side = selection.buildSide.map(s => if (s == LEFT) join.left else join.right)
    val words = Seq(join.hint.leftHint, join.hint.rightHint).flatMap(JoinState.word(_))
    val user =
      Seq(state.userHint.leftHint, state.userHint.rightHint).flatMap(JoinState.word(_))
    if (user.contains(selection.strategy)) "HINT"
    else if (words.exists(_.endsWith(selection.strategy))) "RUN_TIME"
    else
      selection.strategy match {
        case Broadcast if isNullAware                                => "NULL_AWARE"
        case Broadcast if side.exists(Estimates.broadcasts(_, conf)) => "SIZE"
        case Broadcast                                               => "LAST_RESORT"
        case ShuffleHash                                             => "MUCH_SMALLER"
        case ShuffleMerge                                            => "SORTABLE"
        case _                                                       => "CROSS"
      }
  }

  def row(sc: SparkContext, executionId: Option[Long]): LazyRow = LazyRow(
    () => QueryFacts.query(sc, executionId),
    () => settings,
    () => QueryFacts.cluster(sc),
    () => joinRow,
    () => left.row(admits(join.left, join.right, BuildLeft), conf),
    () => right.row(admits(join.right, join.left, BuildRight), conf),
    () => sparkRow
  )
}

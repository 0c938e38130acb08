package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords.Broadcast
import org.apache.spark.sql.aqepilot.facts.{JoinSide, LazyRow, Tables}
import org.apache.spark.sql.aqepilot.spark.engines.Taken
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, JoinStrategy, KeyedJoin, KeyedSide}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions, SparkJoinRules}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint}

/** A join while its query runs, at one re-plan, and what Spark would make of it. */
final private class ReplannedJoin(
    state: JoinState,
    logical: Join,
    leftSide: JoinSide,
    rightSide: JoinSide,
    session: Sessions.Classic
) extends KeyedJoin(state, logical) {

  val left = new ReplannedSide(this, leftSide, isLeft = true)
  val right = new ReplannedSide(this, rightSide, isLeft = false)

  /** The user's hint, and what Spark's own rule makes of it. */
  lazy val sparkHint: JoinHint = JoinStrategy.hintBySpark(logical, state)

  /** Which side Spark would build from if it turned a sort-merge join here into a shuffled hash join. */
  lazy val conversion: Option[String] = {
    def plain(side: JoinSide) = if (side.isPlain) side.finished else None
    FailOpen("conversion", Option.empty[String])(
      SparkJoinRules
        .conversion(logical.copy(hint = sparkHint), plain(leftSide), plain(rightSide))
    )
  }

  /** How Spark would run it; none where the user's hint decides. */
  lazy val sparkStrategy: Option[String] =
    if (JoinState.hasStrategy(state.userHint)) None
    else
      FailOpen("spark strategy", Option.empty[String])(
        JoinStrategy
          .planned(session, logical.copy(hint = sparkHint), leftSide, rightSide, conversion)
      )

  /** What the session's engine would run of it; none while a side's shuffle runs. */
  lazy val taken: Option[Taken] =
    if (leftSide.finished.isEmpty || rightSide.finished.isEmpty) None
    else
      Some(
        new Taken(session, joinType, leftKeys, rightKeys, condition, logical.left, logical.right)
      )

  def isBroadcast: Boolean = leftSide.isBroadcast || rightSide.isBroadcast

  def tables: String = Tables.joined(leftSide.plan, rightSide.plan)
}

/** A side of it, whose shuffle may have run. */
final private class ReplannedSide(
    override val join: ReplannedJoin,
    val measured: JoinSide,
    override val isLeft: Boolean
) extends KeyedSide {

  def name: String = if (isLeft) "left" else "right"

  def other: ReplannedSide = if (isLeft) join.right else join.left

  /** The word of Spark's hint here. */
  def sparkWord: Option[String] =
    JoinState.word(if (isLeft) join.sparkHint.leftHint else join.sparkHint.rightHint)

  /** Whether the session's engine would run a shuffled hash join that builds from it. */
  def isTakenAsHash: Option[Boolean] =
    if (canShuffleHash) join.taken.flatMap(_.asHash(if (isLeft) BuildLeft else BuildRight))
    else join.taken.flatMap(_.asMerge).map(_ => false)

  override def isBroadcastBySpark: Boolean =
    join.sparkStrategy.exists(JoinStrategy.satisfies(_, Broadcast, isLeft))

  /** Its facts, for both sides' asking. */
  lazy val facts: LazyRow = DynamicJoinFacts.side.row(this)
}

package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, SideState}
import org.apache.spark.sql.aqepilot.spark.SparkJoinRules
import org.apache.spark.sql.catalyst.plans.logical.{
  BROADCAST,
  HintInfo,
  Join,
  JoinHint,
  JoinStrategyHint,
  NO_BROADCAST_HASH,
  SHUFFLE_HASH,
  SHUFFLE_MERGE
}
import org.apache.spark.sql.internal.SQLConf

/** Puts the words that policies decided on into a join, as Spark's own hints.
  *
  * @param sparkHint
  *   the user's hint and what Spark's rule makes of it
  */
final private class DecidedHints(
    join: Join,
    state: JoinState,
    sparkHint: => JoinHint,
    isBroadcast: Boolean,
    conf: SQLConf
) {

  /** The join with them; the same object where nothing changes. */
  def of(leftWord: Option[String], rightWord: Option[String]): Join = {
    val hint = JoinHint(
      hintOf(state.left, leftWord, _.leftHint),
      hintOf(state.right, rightWord, _.rightHint)
    )
    withPreferred(if (hint == join.hint) join else join.copy(hint = hint), leftWord, rightWord)
  }

  /** A side's hint: the policy's word over the user's hint, or what is Spark's. */
  private def hintOf(
      memory: SideState,
      word: Option[String],
      side: JoinHint => Option[HintInfo]
  ): Option[HintInfo] = word match {
    case Some(w) =>
      state.overrideSide(memory)
      strategyHint(w) match {
        case Some(h) => Some(side(state.userHint).getOrElse(HintInfo()).copy(strategy = Some(h)))
        case None    => side(state.userHint)
      }
    case None if memory.overridden => side(sparkHint)
    case None                      => side(join.hint)
  }

  private def strategyHint(word: String): Option[JoinStrategyHint] = word match {
    case Broadcast       => Some(BROADCAST)
    case ShuffleHash     => Some(SHUFFLE_HASH)
    case ShuffleMerge    => Some(SHUFFLE_MERGE)
    case NoBroadcastHash => Some(NO_BROADCAST_HASH)
    case _               => None
  }

  /** PREFER_SHUFFLE_HASH needs to know what the other side's hint leaves to a broadcast by size. */
  private def withPreferred(
      base: Join,
      leftWord: Option[String],
      rightWord: Option[String]
  ): Join = {
    lazy val preferred =
      if (isBroadcast) None else SparkJoinRules.preferShuffleHash(base, conf)
    def isOverruled(other: Option[HintInfo]) =
      JoinState.word(other).exists(JoinLegality.rank(_) > 1)
    def prefer(hint: Option[HintInfo], word: Option[String], other: Option[HintInfo]) =
      if (!word.contains(PreferShuffleHash) || isOverruled(other) || preferred.isEmpty) hint
      else Some(hint.getOrElse(HintInfo()).copy(strategy = preferred))
    val hint = JoinHint(
      prefer(base.hint.leftHint, leftWord, base.hint.rightHint),
      prefer(base.hint.rightHint, rightWord, base.hint.leftHint)
    )
    if (hint == join.hint) join else join.copy(hint = hint)
  }
}

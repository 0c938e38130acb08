package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords.PreferShuffleHash
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, SideState}
import org.apache.spark.sql.aqepilot.spark.SparkJoinRules
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint}
import org.apache.spark.sql.internal.SQLConf

/** Puts what policies decided into a join, as Spark's own hints. */
final private class DecidedHints(join: ReplannedJoin, conf: SQLConf) {

  private val logical = join.logical
  private val state = join.state

  /** The join with them; the same object where nothing changes. */
  def of(left: Option[SideHint], right: Option[SideHint]): Join = {
    val hint = JoinHint(
      hintOf(state.left, left, _.leftHint),
      hintOf(state.right, right, _.rightHint)
    )
    withPreferred(if (hint == logical.hint) logical else logical.copy(hint = hint), left, right)
  }

  /** A side's hint: the policy's over the user's hint, or what is Spark's. */
  private def hintOf(
      memory: SideState,
      decided: Option[SideHint],
      side: JoinHint => Option[HintInfo]
  ): Option[HintInfo] = decided match {
    case Some(hint) =>
      state.overrideSide(memory)
      val users = side(state.userHint)
      hint.strategy.fold(users)(s => Some(users.getOrElse(HintInfo()).copy(strategy = Some(s))))
    case None if memory.overridden => side(join.sparkHint)
    case None                      => side(logical.hint)
  }

  /** PREFER_SHUFFLE_HASH needs to know what the other side's hint leaves to a broadcast by size. */
  private def withPreferred(
      base: Join,
      left: Option[SideHint],
      right: Option[SideHint]
  ): Join = {
    lazy val preferred =
      if (join.isBroadcast) None else SparkJoinRules.preferShuffleHash(base, conf)
    def isOverruled(other: Option[HintInfo]) =
      JoinState.word(other).exists(SideHint(_).rank > 1)
    def prefer(hint: Option[HintInfo], decided: Option[SideHint], other: Option[HintInfo]) =
      if (!decided.exists(_.word == PreferShuffleHash) || isOverruled(other) || preferred.isEmpty)
        hint
      else Some(hint.getOrElse(HintInfo()).copy(strategy = preferred))
    val hint = JoinHint(
      prefer(base.hint.leftHint, left, base.hint.rightHint),
      prefer(base.hint.rightHint, right, base.hint.leftHint)
    )
    if (hint == logical.hint) logical else logical.copy(hint = hint)
  }
}

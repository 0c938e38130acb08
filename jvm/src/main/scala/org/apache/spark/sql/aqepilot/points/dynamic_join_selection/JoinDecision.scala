package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinGuards
import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.facts.{FactsRow, JoinSide}
import org.apache.spark.sql.aqepilot.plans.joins.{
  AskedSide,
  JoinFacts,
  JoinState,
  JoinStrategy,
  SideState,
  StageTables
}
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, SparksTasks}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.{FailOpen, SparkJoinRules}
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint}

/** One join at one re-plan. */
final private class JoinDecision(
    at: PointRule[Any],
    join: Join,
    state: JoinState,
    left: JoinSide,
    right: JoinSide,
    tables: => String
) {

  private lazy val sparkHint: JoinHint = JoinStrategy.hintBySpark(join, state)

  private lazy val conversion: Option[String] = {
    def plain(side: JoinSide) = if (side.isPlain) side.finished else None
    FailOpen("conversion", Option.empty[String])(
      SparkJoinRules.conversion(join.copy(hint = sparkHint), plain(left), plain(right))
    )
  }

  private lazy val sparkStrategy: Option[String] =
    if (JoinState.hasStrategy(state.userHint)) None
    else
      FailOpen("spark strategy", Option.empty[String])(
        JoinStrategy.planned(at.session, join.copy(hint = sparkHint), left, right, conversion)
      )

  private def prunes(isLeft: Boolean): Boolean = state.prunes.isAwaited(join, isLeft) &&
    sparkStrategy.exists(JoinStrategy.satisfies(_, Broadcast, isLeft))

  private val isBroadcast = left.isBroadcast || right.isBroadcast

  private val key = at.key((at.executionId, left.version, right.version, join.joinType))

  /** The join with the hints that say what was decided. */
  def decide(factsOf: (=> JoinHint, => Option[String], Boolean => Boolean) => JoinFacts): Join =
    state.synchronized {
      lazy val facts = factsOf(sparkHint, conversion, prunes(_))
      ask(facts, state.left, left, isLeft = true)
      ask(facts, state.right, right, isLeft = false)
      val isOthers = OtherRules.gaveHint(at.session, join, state)
      val refused = if (isOthers) None else tableRefusal
      def word(side: SideState) = side.memory.answer
        .flatMap(_.word)
        .filterNot(w => isOthers || state.keeps.isDefined || (refused.isDefined && builds(w)))
      val (leftWord, rightWord) = (word(state.left), word(state.right))
      val isNot = refused.isDefined || isOthers || state.keeps.isDefined
      if (state.selection.inForce.isEmpty)
        StageTables.note(join, state, if (isNot) 0L else tableBytes)
      val decided =
        if (isOthers) join
        else new DecidedHints(join, state, sparkHint, isBroadcast, at.conf).of(leftWord, rightWord)
      state.left.isDecided = leftWord.isDefined
      state.right.isDecided = rightWord.isDefined
      if (!isOthers) {
        state.left.leftWords += JoinState.word(decided.hint.leftHint)
        state.right.leftWords += JoinState.word(decided.hint.rightHint)
      }
      FailOpen("record", ())(record(leftWord, rightWord, decided.hint, isOthers, refused))
      decided
    }

  private def ask(facts: => JoinFacts, memory: SideState, side: JoinSide, isLeft: Boolean): Unit =
    if (!at.isAsked) memory.memory.forget()
    else if (isBroadcast && memory.memory.answer.isDefined)
      () // Spark keeps the broadcast: nothing to decide
    else if (side.finished.isEmpty) memory.memory.forget()
    else
      memory.memory.of(key) {
        val asked = at.ask()(facts.row(at.session.sparkContext, at.conf, at.executionId, isLeft))
        val word = JoinState.word(if (isLeft) sparkHint.leftHint else sparkHint.rightHint)
        AskedSide(asked, word, sparkStrategy)
      }

  private def builds(word: String) = word == ShuffleHash || word == PreferShuffleHash

  /** Of one task's hash table, the larger of both sides'; 0 where no policy wants one. */
  private def tableBytes: Long = Seq(state.left, state.right)
    .flatMap(_.memory.answer.filter(_.word.exists(builds)))
    .flatMap { of =>
      val facts = new FactsRow(DynamicJoinSelectionPoint.facts, of.asked.facts)
      JoinGuards.hashBuildBytes(facts, "side", at.guards.growth)
    }
    .foldLeft(0L)(math.max)

  private def tableRefusal: Option[String] = {
    val bytes = tableBytes
    if (bytes == 0) None else StageTables.refusal(join, state, bytes, at.guards)
  }

  private def record(
      leftWord: Option[String],
      rightWord: Option[String],
      hint: JoinHint,
      isOthers: Boolean,
      refused: Option[String]
  ): Unit = {
    val rightIsSmaller = right.sizeInBytes <= left.sizeInBytes

    /** Why a side's word gave way to the other side's, or did not hold, if so. */
    def lost(side: SideState, word: Option[String], other: Option[HintInfo], isSmaller: Boolean) =
      if (isOthers) Some((Reason.OtherExtension, None))
      else if (state.keeps.isDefined) state.keeps.map(SparksTasks.refusal)
      else if (refused.isDefined && side.memory.answer.flatMap(_.word).exists(builds))
        Some((Reason.GuardHashBuildBytes, refused))
      else word.flatMap(JoinLegality.loses(_, JoinState.word(other), isSmaller)).map((_, None))

    recordSide("left", state.left, lost(state.left, leftWord, hint.rightHint, rightIsSmaller))
    recordSide("right", state.right, lost(state.right, rightWord, hint.leftHint, !rightIsSmaller))
  }

  private def recordSide(
      name: String,
      side: SideState,
      lost: Option[(Reason, Option[String])]
  ): Unit = side.memory.answer.foreach { of =>
    side.memory.once(lost) { number =>
      at.record(of.asked, lost.getOrElse(PointRule.Applied)) {
        Subject(
          s"join ${state.id}, $name side",
          s"${state.id}-$name-$number",
          joinId = Some(state.id),
          side = Some(name),
          tables = Some(tables),
          sparkAnswer = of.sparkWord,
          sparkStrategy = of.sparkStrategy,
          chosen = word => Some(word.toString)
        )
      }
    }
  }
}

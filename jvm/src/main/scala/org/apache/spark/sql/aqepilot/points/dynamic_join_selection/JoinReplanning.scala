package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinGuards
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, StageTables}
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, SparksTasks}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.{Memory, PointRule}
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.plans.logical.Join

/** What asking about one side gave, and what Spark would do there. */
final private case class AskedSide(
    asked: Asked[SideHint],
    sparkWord: Option[String],
    sparkStrategy: Option[String]
)

/** What the point remembers of a join. The answers are guarded by the monitor of the join's state. */
final private class JoinMemory {

  val left = new Memory[AskedSide]
  val right = new Memory[AskedSide]

  /** The join's strategy in the latest re-plan, adopted or not. */
  @volatile var planned: Option[String] = None
}

private object JoinMemory {

  private val ofPoint = new JoinState.OfPoint(() => new JoinMemory)

  def of(state: JoinState): JoinMemory = state.of(ofPoint)
}

/** One join at one re-plan: asks about its sides, and puts what was decided into the join. */
final private class JoinReplanning(at: PointRule[SideHint], join: ReplannedJoin) {

  private val state = join.state
  private val memory = JoinMemory.of(state)
  private val left = new Side(join.left, memory.left)
  private val right = new Side(join.right, memory.right)
  private val sides = Seq(left, right)

  /** A side, and what is remembered of it. */
  private class Side(
      val replanned: ReplannedSide,
      val memory: Memory[AskedSide]
  ) {

    /** The answer to carry out, if nothing keeps it from that. */
    def decision: Option[SideHint] = memory.answer.flatMap(_.asked.decision)
  }

  private val key = at.key(
    (
      at.executionId,
      join.left.measured.version,
      join.right.measured.version,
      join.joinType
    )
  )

  /** The join with the hints that say what was decided. */
  def decided: Join =
    state.synchronized {
      sides.foreach(ask)
      val isOthers = OtherRules.gaveHint(at.session, join.logical, state)
      val tooLarge = if (isOthers) None else tableRefusal
      def carriedOut(side: Side) = side.decision.filterNot(hint =>
        isOthers || state.keeps.isDefined || (tooLarge.isDefined && hint.buildsTables)
      )
      val (leftHint, rightHint) = (carriedOut(left), carriedOut(right))
      val isNot = tooLarge.isDefined || isOthers || state.keeps.isDefined
      if (state.selected.isEmpty)
        StageTables.note(join.logical, state, if (isNot) 0L else tableBytes)
      val decided =
        if (isOthers) join.logical else new DecidedHints(join, at.conf).of(leftHint, rightHint)
      state.left.isDecided = leftHint.isDefined
      state.right.isDecided = rightHint.isDefined
      if (!isOthers) {
        state.left.ourHints += JoinState.word(decided.hint.leftHint)
        state.right.ourHints += JoinState.word(decided.hint.rightHint)
      }
      FailOpen("record", ()) {
        def refused(side: Side) = refusal(side, isOthers, tooLarge)
        record(left, refused(left).orElse(lost(left, leftHint, decided)))
        record(right, refused(right).orElse(lost(right, rightHint, decided)))
      }
      decided
    }

  private def ask(side: Side): Unit =
    if (!at.isAsked) side.memory.forget()
    else if (join.isBroadcast && side.memory.answer.isDefined)
      () // Spark keeps the broadcast: nothing to decide
    else if (side.replanned.measured.finished.isEmpty) side.memory.forget()
    else
      side.memory.of(key) {
        val asked = at.ask()(DynamicJoinFacts.all.row(at.query, side.replanned))
        AskedSide(asked, side.replanned.sparkWord, join.sparkStrategy)
      }

  /** Of one task's hash table, the larger of both sides'; 0 where no policy wants one. */
  private def tableBytes: Long = sides
    .flatMap(_.memory.answer.filter(_.asked.decision.exists(_.buildsTables)))
    .flatMap { answer =>
      val facts = new FactsRow(DynamicJoinSelectionPoint.facts, answer.asked.facts)
      JoinGuards.hashBuildBytes(facts, "side", at.guards.growth)
    }
    .foldLeft(0L)(math.max)

  private def tableRefusal: Option[String] = {
    val bytes = tableBytes
    if (bytes == 0) None else StageTables.refusal(join.logical, state, bytes, at.guards)
  }

  /** Why a side's decision is not carried out, if so.
    *
    * @param tooLarge
    *   why a hash table does not fit, if so
    */
  private def refusal(
      side: Side,
      isOthers: Boolean,
      tooLarge: Option[String]
  ): Option[(Reason, Option[String])] =
    if (isOthers) Some((Reason.OtherExtension, None))
    else if (state.keeps.isDefined) state.keeps.map(SparksTasks.refusal)
    else if (tooLarge.isDefined && side.decision.exists(_.buildsTables))
      Some((Reason.GuardHashBuildBytes, tooLarge))
    else None

  /** Why a side's hint gave way to the other side's, if it did. */
  private def lost(
      side: Side,
      hint: Option[SideHint],
      decided: Join
  ): Option[(Reason, Option[String])] = {
    val other = if (side.replanned.isLeft) decided.hint.rightHint else decided.hint.leftHint
    val rightIsSmaller = join.right.measured.sizeInBytes <= join.left.measured.sizeInBytes
    for {
      mine <- hint
      word <- JoinState.word(other)
      reason <- mine.losesTo(SideHint(word), rightIsSmaller == side.replanned.isLeft)
    } yield (reason, None)
  }

  private def record(side: Side, lost: Option[(Reason, Option[String])]): Unit =
    side.memory.answer.foreach { answer =>
      val name = side.replanned.name
      side.memory.once(lost) { number =>
        at.record(answer.asked, lost.getOrElse(PointRule.Applied)) {
          Subject(
            s"join ${state.id}, $name side",
            s"${state.id}-$name-$number",
            joinId = Some(state.id),
            side = Some(name),
            tables = Some(join.tables),
            sparkAnswer = answer.sparkWord,
            sparkStrategy = answer.sparkStrategy,
            chosen = (hint: SideHint) => Some(hint)
          )
        }
      }
    }
}

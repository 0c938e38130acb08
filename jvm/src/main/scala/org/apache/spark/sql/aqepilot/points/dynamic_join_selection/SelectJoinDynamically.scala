package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.{
  Asked,
  Asking,
  Guardrails,
  Health,
  PolicySet,
  QueryFacts
}
import org.apache.spark.sql.aqepilot.doors.{FailOpen, Sessions, SparkJoinRules}
import org.apache.spark.sql.aqepilot.log.DecisionRecord
import org.apache.spark.sql.aqepilot.plans.{
  AskedSide,
  JoinFacts,
  JoinSide,
  JoinState,
  JoinStrategy,
  OtherRules,
  PlanIntegrity,
  ReadTwice,
  SideState,
  StageTables
}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{
  HintInfo,
  Join,
  JoinHint,
  JoinStrategyHint,
  LogicalPlan
}
import org.apache.spark.sql.catalyst.plans.logical.{
  BROADCAST,
  NO_BROADCAST_HASH,
  SHUFFLE_HASH,
  SHUFFLE_MERGE
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.joins.JoinGuards
import io.aqepilot.joins.JoinWords._
import io.aqepilot.points.dynamic_join_selection.{DynamicJoinSelectionPoint, JoinLegality}
import io.aqepilot.terms.{FactsRow, Reason}

/** The decision point `dynamic_join_selection`: puts policies' answers into joins as Spark's own hints.
  *
  * Hook: AQE's logical batch, after Spark's own DynamicJoinSelection or DemoteBroadcastHashJoin. Asked for each
  * side with a finished shuffle, left then right; answered from memory until a fact changes. A side whose
  * answer is null keeps what Spark's rule gave it; once a policy's word was in the plan there, the user's hint is
  * restored and Spark's rule is run anew, because that rule is silent on a side that has a hint.
  *
  * A no-op without policies, for joins without equality keys, and for sides whose shuffle has not run.
  */
object SelectJoinDynamically extends Rule[LogicalPlan] {

  private val point = DynamicJoinSelectionPoint

  override def apply(plan: LogicalPlan): LogicalPlan =
    DecisionRecord.failingOpen(point, plan) {
      lazy val set = PolicySet.of(conf)
      if (!Health.isLive(point) || (!set.isAsked(point) && !JoinState.isOverridden(plan))) plan
      else {
        val decided =
          plan.transformDownWithPruning(_.containsPattern(TreePattern.JOIN)) { case join: Join =>
            Sessions.active.fold(join)(decide(_, join, set))
          }
        if (PlanIntegrity.differInHintsOnly(plan, decided)) decided
        else throw new IllegalStateException("more than hints would have changed")
      }
    }

  private def decide(session: Sessions.Classic, join: Join, set: PolicySet): Join = join match {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, condition, _, _, _, _) =>
      val left = JoinSide.of(join.left)
      val right = JoinSide.of(join.right)
      if (left.finished.isEmpty && right.finished.isEmpty) join
      else
        JoinState.of(join) match {
          case Some(state) if state.isReadTwice =>
            if (set.isAsked(point))
              ReadTwice.record(session, point, Some(JoinRecord.tables(left, right)))
            join
          case Some(state) =>
            new JoinDecision(session, join, state, left, right, set).decide { (spark, conversion) =>
              new JoinFacts(
                state,
                join.joinType,
                leftKeys,
                rightKeys,
                condition.isDefined,
                left,
                right,
                spark,
                conversion
              )
            }
          case None =>
            JoinRecord.untracked(session, join, left, right, set)
            join
        }
    case _ => join
  }
}

/** One join at one re-plan. */
final private class JoinDecision(
    session: Sessions.Classic,
    join: Join,
    state: JoinState,
    left: JoinSide,
    right: JoinSide,
    set: PolicySet
) {

  private val point = DynamicJoinSelectionPoint
  private val conf: SQLConf = session.sessionState.conf
  private val executionId = QueryFacts.executionId(session.sparkContext)

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
        JoinStrategy.planned(session, join.copy(hint = sparkHint), left, right, conversion)
      )

  private val isBroadcast = left.isBroadcast || right.isBroadcast

  private val key =
    (executionId, set, left.version, right.version, join.joinType, QueryFacts.conf(conf))

  def decide(factsOf: (=> JoinHint, => Option[String]) => JoinFacts): Join = state.synchronized {
    lazy val facts = factsOf(sparkHint, conversion)
    Seq((state.left, left, true), (state.right, right, false)).foreach {
      case (memory, side, isLeft) =>
        if (!set.isAsked(point)) memory.asked = None
        else if (isBroadcast && memory.asked.isDefined)
          () // Spark keeps the broadcast: nothing to decide
        else if (side.finished.isEmpty) memory.asked = None
        else if (!memory.asked.exists(_.key == key)) {
          memory.askings += 1
          memory.asked = Some(ask(facts, isLeft, memory.askings))
        }
    }
    val isOthers = OtherRules.gaveHint(session, join, state)
    val refused = if (isOthers) None else tableRefusal
    def word(memory: SideState) = memory.asked
      .flatMap(_.word)
      .filterNot(w => isOthers || (refused.isDefined && builds(w)))
    val leftWord = word(state.left)
    val rightWord = word(state.right)
    if (state.selection.inForce.isEmpty)
      StageTables.note(join, state, if (refused.isDefined || isOthers) 0L else tableBytes)
    val decided = if (isOthers) join else hinted(leftWord, rightWord)
    remember(state.left, leftWord, decided.hint.leftHint, isOthers)
    remember(state.right, rightWord, decided.hint.rightHint, isOthers)
    record(leftWord, rightWord, decided.hint, isOthers, refused)
    decided
  }

  private def builds(word: String) = word == ShuffleHash || word == PreferShuffleHash

  private def guards = Guardrails.of(conf, session.sparkContext)

  /** Of one task's hash table, the larger of both sides'; 0 where no policy wants one. */
  private def tableBytes: Long = Seq(state.left, state.right)
    .flatMap(_.asked.filter(_.word.exists(builds)))
    .flatMap { of =>
      val facts = new FactsRow(point.facts, of.asked.facts)
      JoinGuards.hashBuildBytes(facts, "side", guards.growth)
    }
    .foldLeft(0L)(math.max)

  private def tableRefusal: Option[String] = {
    val bytes = tableBytes
    if (bytes == 0) None else StageTables.refusal(join, state, bytes, guards)
  }

  private def remember(
      memory: SideState,
      word: Option[String],
      hint: Option[HintInfo],
      isOthers: Boolean
  ): Unit = {
    memory.isDecided = word.isDefined
    if (!isOthers) memory.leftWords += JoinState.word(hint)
  }

  private def hinted(leftWord: Option[String], rightWord: Option[String]): Join = {
    val hint = JoinHint(
      hintOf(state.left, leftWord, _.leftHint),
      hintOf(state.right, rightWord, _.rightHint)
    )
    withPreferred(if (hint == join.hint) join else join.copy(hint = hint), leftWord, rightWord)
  }

  private def ask(facts: => JoinFacts, isLeft: Boolean, number: Int): AskedSide = {
    val asked = Asking.of(session, set, point, executionId) {
      facts.row(session.sparkContext, conf, executionId, isLeft)
    }
    val word = JoinState.word(if (isLeft) sparkHint.leftHint else sparkHint.rightHint)
    AskedSide(key, number, asked, word, sparkStrategy)
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
    def prefer(hint: Option[HintInfo], word: Option[String], other: Option[HintInfo]) =
      if (
        !word.contains(
          PreferShuffleHash
        ) || JoinState.word(other).exists(JoinLegality.rank(_) > 1) ||
        preferred.isEmpty
      ) hint
      else Some(hint.getOrElse(HintInfo()).copy(strategy = preferred))
    val hint = JoinHint(
      prefer(base.hint.leftHint, leftWord, base.hint.rightHint),
      prefer(base.hint.rightHint, rightWord, base.hint.leftHint)
    )
    if (hint == join.hint) join else join.copy(hint = hint)
  }

  private def record(
      leftWord: Option[String],
      rightWord: Option[String],
      hint: JoinHint,
      isOthers: Boolean,
      refused: Option[String]
  ): Unit =
    FailOpen("record", ()) {
      val rightIsSmaller = right.sizeInBytes <= left.sizeInBytes
      def loser(
          memory: SideState,
          word: Option[String],
          other: Option[HintInfo],
          otherIsSmaller: Boolean
      ): Option[(Reason, Option[String])] =
        if (isOthers) Some((Reason.OtherExtension, None))
        else if (refused.isDefined && memory.asked.flatMap(_.word).exists(builds))
          Some((Reason.GuardHashBuildBytes, refused))
        else
          word.flatMap(JoinLegality.loses(_, JoinState.word(other), otherIsSmaller)).map((_, None))
      JoinRecord.side(
        session,
        state,
        state.left,
        executionId,
        left,
        right,
        isLeft = true,
        loser(state.left, leftWord, hint.rightHint, rightIsSmaller)
      )
      JoinRecord.side(
        session,
        state,
        state.right,
        executionId,
        left,
        right,
        isLeft = false,
        loser(state.right, rightWord, hint.leftHint, !rightIsSmaller)
      )
    }
}

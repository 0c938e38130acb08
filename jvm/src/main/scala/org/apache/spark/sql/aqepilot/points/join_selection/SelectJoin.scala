package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.{
  Asked,
  Asking,
  Guardrails,
  Health,
  PolicySet,
  QueryFacts
}
import org.apache.spark.sql.aqepilot.doors.{FailOpen, Sessions}
import org.apache.spark.sql.aqepilot.log.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.plans.{
  AskedSelection,
  JoinFacts,
  JoinSide,
  JoinState,
  JoinStrategy,
  OtherRules,
  ReadTwice,
  StageTables,
  Tables
}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.{
  BROADCAST,
  HintInfo,
  Join,
  JoinHint,
  JoinStrategyHint,
  LogicalPlan,
  SHUFFLE_HASH,
  SHUFFLE_MERGE,
  SHUFFLE_REPLICATE_NL
}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.joins.JoinWords._
import io.aqepilot.joins.Selection
import io.aqepilot.points.join_selection.{JoinSelectionPoint, SelectionLegality}
import io.aqepilot.terms.{FactsRow, Guards, Reason}

/** The decision point `join_selection`: plans joins as policies say, by Spark's own strategy with hints that
  * mean the same.
  *
  * Hook: planner strategy, before Spark's own, at the first planning and at every re-plan. The plan's hints stay
  * as they are: each planning starts from Spark's choice. A join that a strategy of another extension plans,
  * before or after ours, is that strategy's.
  *
  * A no-op without policies, and for joins of which a side is broadcast already.
  */
object SelectJoin extends SparkStrategy {

  private val point = JoinSelectionPoint

  override def apply(plan: LogicalPlan): Seq[SparkPlan] =
    DecisionRecord.failingOpen(point, Seq.empty[SparkPlan])(plan match {
      case join: Join =>
        lazy val set = PolicySet.of(SQLConf.get)
        if (!Health.isLive(point) || !set.isAsked(point)) Nil
        else if (JoinSide.of(join.left).isBroadcast || JoinSide.of(join.right).isBroadcast) Nil
        else Sessions.active.fold(Seq.empty[SparkPlan])(decide(_, set, join))
      case _ => Nil
    })

  private def decide(session: Sessions.Classic, set: PolicySet, join: Join): Seq[SparkPlan] =
    JoinState.of(join) match {
      case Some(state) if state.isReadTwice =>
        ReadTwice.record(session, point, Some(tables(join)))
        Nil
      case Some(state) => state.synchronized(decide(session, set, join, state))
      case None        =>
        val what = s"a ${JoinFacts.name(join.joinType)} join made by a re-plan"
        DecisionRecord.undecided(session, point, Reason.UntrackedJoin, what, Some(tables(join)))
        Nil
    }

  private def decide(
      session: Sessions.Classic,
      set: PolicySet,
      join: Join,
      state: JoinState
  ): Seq[SparkPlan] = {
    val asked = ask(session, set, join, state)
    def tasks = asked.decision
      .filter(s => s.strategy == ShuffleReplicate && !asked.spark.contains(s))
      .flatMap(_ => CartesianTasks.refusal(session, join, state))
    lazy val guards = Guardrails.of(session.sessionState.conf, session.sparkContext)
    def beside = asked.decision.flatMap { s =>
      tableBytes(s, asked, guards).flatMap(StageTables.refusal(join, state, _, guards))
    }
    val refused: Option[(Reason, Option[String])] =
      if (state.left.isDecided || state.right.isDecided) Some((Reason.RunTimeDecision, None))
      else if (asked.decision.isDefined && OtherRules.gaveHint(session, join, state))
        Some((Reason.OtherExtension, None))
      else
        tasks.map(why => (Reason.GuardPartitions, Some(why)))
          .orElse(beside.map(why => (Reason.GuardHashBuildBytes, Some(why))))
    val selection = if (refused.isEmpty) asked.decision else None
    // Spark asks the strategies in turn: these plans are taken, so that none is asked a second time.
    val byOthers = if (selection.isEmpty) Nil else OtherRules.planned(session, this, join)
    val isOurs = byOthers.isEmpty
    state.selection.inForce = if (isOurs) selection else None
    val table = state.selection.inForce.flatMap(tableBytes(_, asked, guards))
    if (!state.left.isDecided && !state.right.isDecided)
      StageTables.note(join, state, table.getOrElse(0L))
    val outcome =
      refused.getOrElse((if (isOurs) Reason.Applied else Reason.OtherExtension, None))
    CartesianTasks.note(
      join,
      state,
      selection.filter(_ => isOurs).fold(asked.spark)(Some(
        _
      )).exists(_.strategy == ShuffleReplicate)
    )
    record(session, join, state, asked, outcome)
    selection match {
      case Some(s) if isOurs => JoinStrategy.plannedBySpark(session, join.copy(hint = hint(s)))
      case _                 => byOthers
    }
  }

  private def ask(
      session: Sessions.Classic,
      set: PolicySet,
      join: Join,
      state: JoinState
  ): AskedSelection = {
    val sc = session.sparkContext
    val conf = session.sessionState.conf
    val executionId = QueryFacts.executionId(sc)
    lazy val planned = FailOpen("spark strategy", Option.empty[SparkPlan])(
      JoinStrategy.plannedBySpark(session, join).headOption
    )
    val begun = System.nanoTime()
    val facts = new SelectionFacts(state, join, conf, JoinState.isReplan(join), planned)
    val key = (set, facts.version, facts.settings)
    state.selection.asked.filter(_.key == key).getOrElse {
      val number = state.selection.asked.fold(1)(_.number + 1)
      val asked = Asking.of(session, set, point, executionId, begun = begun)(
        facts.row(sc, executionId)
      )
      val of = AskedSelection(
        key,
        number,
        asked,
        planned.flatMap(JoinStrategy.selection),
        planned.flatMap(JoinStrategy.of)
      )
      state.selection.asked = Some(of)
      of
    }
  }

  /** Of one task's hash table, where a selection has one built that Spark's own choice does not build. */
  private def tableBytes(
      selection: Selection,
      asked: AskedSelection,
      guards: Guards
  ): Option[Long] =
    if (selection.strategy != ShuffleHash || asked.spark.contains(selection)) None
    else {
      val facts = new FactsRow(point.facts, asked.asked.facts)
      val side = if (selection.buildSide.contains(BuildRight)) "right" else "left"
      Some(SelectionLegality.hashBuildBytes(side, facts, guards.growth))
    }

  /** The hints that lead Spark's strategy to a selection; the user has given none. */
  private def hint(selection: Selection): JoinHint = {
    val strategy: JoinStrategyHint = selection.strategy match {
      case Broadcast    => BROADCAST
      case ShuffleHash  => SHUFFLE_HASH
      case ShuffleMerge => SHUFFLE_MERGE
      case _            => SHUFFLE_REPLICATE_NL
    }
    val info = Some(HintInfo(strategy = Some(strategy)))
    if (selection.buildSide.contains(BuildRight)) JoinHint(None, info) else JoinHint(info, None)
  }

  private def tables(join: Join) =
    Tables.described(join.left) + " ⋈ " + Tables.described(join.right)

  private def record(
      session: Sessions.Classic,
      join: Join,
      state: JoinState,
      of: AskedSelection,
      outcome: (Reason, Option[String])
  ): Unit = FailOpen("record", ()) {
    val now = Some((of.key, outcome))
    if (state.selection.recorded != now) {
      state.selection.recorded = now
      def subject = Subject(
        s"join ${state.id}",
        s"${state.id}-selection-${of.number}",
        joinId = Some(state.id),
        tables = Some(tables(join)),
        sparkAnswer = of.spark.map(s => point.show(s.row)),
        sparkStrategy = of.sparkStrategy,
        chosen = answer => Some(Selection.of(answer.asInstanceOf[InternalRow]))
      )
      val executionId = QueryFacts.executionId(session.sparkContext)
      DecisionRecord.write(session, point, executionId, subject, of.asked, outcome)
    }
  }
}

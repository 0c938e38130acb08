package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.plans.joins.{
  AskedSelection,
  JoinState,
  JoinStrategy,
  StageTables
}
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, Repeatable, SparksTasks}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.{
  BROADCAST,
  HintInfo,
  Join,
  JoinHint,
  LogicalPlan,
  SHUFFLE_HASH,
  SHUFFLE_MERGE,
  SHUFFLE_REPLICATE_NL
}
import org.apache.spark.sql.execution.SparkPlan

/** One join at one planning. */
final private class SelectionDecision(
    at: PointRule[Any],
    join: Join,
    state: JoinState,
    tables: => String
) {

  /** The join as decided; none where it is left to the strategies that come later. */
  def planned: Seq[SparkPlan] = {
    val asked = ask
    val isRunTimes = state.left.isDecided || state.right.isDecided
    val refused = if (isRunTimes) Some((Reason.RunTimeDecision, None)) else refusal(asked)
    val selection = if (refused.isEmpty) asked.decision else None
    // Spark asks the strategies in turn: these plans are taken, so that none is asked a second time.
    val byOthers = if (selection.isEmpty) Nil else OtherRules.planned(at.session, SelectJoin, join)
    val ours = selection.filter(_ => byOthers.isEmpty)
    state.selection.inForce = ours
    if (!isRunTimes)
      StageTables.note(join, state, ours.flatMap(tableBytes(_, asked)).getOrElse(0L))
    val runs = ours.orElse(asked.spark)
    CartesianTasks.note(join, state, runs.exists(_.strategy == ShuffleReplicate))
    val applied = if (byOthers.isEmpty) Reason.Applied else Reason.OtherExtension
    record(asked, refused.getOrElse((applied, None)))
    ours match {
      case Some(s) => JoinStrategy.plannedBySpark(at.session, join.copy(hint = hint(s)))
      case None    => byOthers
    }
  }

  private def ask: AskedSelection = {
    lazy val bySpark = FailOpen("spark strategy", Option.empty[SparkPlan])(
      JoinStrategy.plannedBySpark(at.session, join).headOption
    )
    val begun = System.nanoTime()
    val facts = new SelectionFacts(state, join, at.conf, JoinState.isReplan(join), bySpark)
    state.selection.memory.of(at.key(facts.version)) {
      val asked = at.ask(begun = begun)(facts.row(at.session.sparkContext, at.executionId))
      AskedSelection(
        asked,
        bySpark.flatMap(JoinStrategy.selection),
        bySpark.flatMap(JoinStrategy.of)
      )
    }
  }

  /** Why the decision is not carried out, if so. */
  private def refusal(asked: AskedSelection): Option[(Reason, Option[String])] =
    asked.decision.flatMap { decision =>
      def product =
        if (decision.strategy != ShuffleReplicate || asked.spark.contains(decision)) None
        else join.children.flatMap(Repeatable.except(_)).headOption
          .map(part => (Reason.NotDeterministic, differs(part)))
          .orElse(CartesianTasks.refusal(at.session, join, state).map((Reason.GuardPartitions, _)))
      def beside =
        tableBytes(decision, asked).flatMap(StageTables.refusal(join, state, _, at.guards))
      def ofBarrier =
        if (decision.strategy != ShuffleReplicate || !state.isAboveBarrier) None
        else Some(Reason.BarrierStage)
      val keeps =
        if (asked.spark.contains(decision)) None else state.keeps.orElse(ofBarrier)
      if (keeps.nonEmpty) keeps.map(SparksTasks.refusal)
      else if (OtherRules.gaveHint(at.session, join, state)) Some((Reason.OtherExtension, None))
      else
        product.orElse(beside.map((Reason.GuardHashBuildBytes, _)))
          .map { case (reason, why) => (reason, Some(why)) }
    }

  private def differs(part: LogicalPlan) =
    "a Cartesian product runs a side again for each partition of the other, and its " +
      s"${part.nodeName} may give other rows then"

  /** Of one task's hash table, where a selection has one built that Spark's own choice does not build. */
  private def tableBytes(selection: Selection, asked: AskedSelection): Option[Long] =
    if (selection.strategy != ShuffleHash || asked.spark.contains(selection)) None
    else {
      val facts = new FactsRow(JoinSelectionPoint.facts, asked.asked.facts)
      val side = if (selection.buildSide.contains(BuildRight)) "right" else "left"
      Some(SelectionLegality.hashBuildBytes(side, facts, at.guards.growth))
    }

  /** The hints that lead Spark's strategy to a selection; the user has given none. */
  private def hint(selection: Selection): JoinHint = {
    val strategy = selection.strategy match {
      case Broadcast    => BROADCAST
      case ShuffleHash  => SHUFFLE_HASH
      case ShuffleMerge => SHUFFLE_MERGE
      case _            => SHUFFLE_REPLICATE_NL
    }
    val info = Some(HintInfo(strategy = Some(strategy)))
    if (selection.buildSide.contains(BuildRight)) JoinHint(None, info) else JoinHint(info, None)
  }

  private def record(of: AskedSelection, outcome: (Reason, Option[String])): Unit =
    state.selection.memory.once(outcome) { number =>
      at.record(of.asked, outcome) {
        Subject(
          s"join ${state.id}",
          s"${state.id}-selection-$number",
          joinId = Some(state.id),
          tables = Some(tables),
          sparkAnswer = of.spark.map(s => JoinSelectionPoint.show(s.row)),
          sparkStrategy = of.sparkStrategy,
          chosen = answer => Some(Selection.of(answer.asInstanceOf[InternalRow]))
        )
      }
    }
}

package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, JoinStrategy, StageTables}
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, Repeatable, SparksTasks}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.{Memory, PointRule}
import org.apache.spark.sql.aqepilot.spark.FailOpen
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

/** What asking about one join gave.
  *
  * @param spark
  *   how Spark would run it
  */
final private case class AskedSelection(
    asked: Asked[SelectionDecision],
    spark: Option[Selection],
    sparkStrategy: Option[String]
) {

  def selection: Option[Selection] = asked.decision.flatMap(_.selection)
}

/** What the point remembers of a join. Asked and recorded under the monitor of the join's state. */
final private class SelectionMemory {

  val answers = new Memory[AskedSelection]

  /** Whether the latest plan runs it as a Cartesian product, and which joins above it are such. */
  @volatile var isProduct: Boolean = false
  @volatile var productsAbove: Set[Long] = Set.empty
}

private object SelectionMemory {

  private val ofPoint = new JoinState.OfPoint(() => new SelectionMemory)

  def of(state: JoinState): SelectionMemory = state.of(ofPoint)
}

/** One join at one planning: asks about it, and plans it as was decided. */
final private class JoinPlanning(
    at: PointRule[SelectionDecision],
    join: Join,
    state: JoinState,
    tables: => String
) {

  private val memory = SelectionMemory.of(state).answers

  /** The join as decided; none where it is left to the strategies that come later. */
  def planned: Seq[SparkPlan] = {
    val asked = ask
    val isRunTimes = state.left.isDecided || state.right.isDecided
    val refused = if (isRunTimes) Some((Reason.RunTimeDecision, None)) else refusal(asked)
    val selection = if (refused.isEmpty) asked.selection else None
    // Spark asks the strategies in turn: these plans are taken, so that none is asked a second time.
    val byOthers = if (selection.isEmpty) Nil else OtherRules.planned(at.session, SelectJoin, join)
    val ours = selection.filter(_ => byOthers.isEmpty)
    state.selected = ours
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
    val known = new JoinToPlan(state, join, at.query.settings.conf, bySpark)
    memory.of(at.key(known.version)) {
      val asked = at.ask(begun = begun)(SelectionFacts.all.row(at.query, known))
      AskedSelection(
        asked,
        bySpark.flatMap(JoinStrategy.selection),
        bySpark.flatMap(JoinStrategy.of)
      )
    }
  }

  /** Why the decision is not carried out, if so. */
  private def refusal(asked: AskedSelection): Option[(Reason, Option[String])] =
    asked.selection.flatMap { selection =>
      def product =
        if (selection.strategy != ShuffleReplicate || asked.spark.contains(selection)) None
        else productRefusal
      def tooLarge =
        tableBytes(selection, asked).flatMap(StageTables.refusal(join, state, _, at.guards))
      val keeps = keepsSparks(selection, asked)
      if (keeps.nonEmpty) keeps.map(SparksTasks.refusal)
      else if (OtherRules.gaveHint(at.session, join, state)) Some((Reason.OtherExtension, None))
      else
        product.orElse(tooLarge.map((Reason.GuardHashBuildBytes, _)))
          .map { case (reason, why) => (reason, Some(why)) }
    }

  /** Why the join is to stay as Spark plans it, if so. */
  private def keepsSparks(selection: Selection, asked: AskedSelection): Option[Reason] =
    if (asked.spark.contains(selection)) None
    else
      state.keeps.orElse(
        if (selection.strategy == ShuffleReplicate && state.isAboveBarrier)
          Some(Reason.BarrierStage)
        else None
      )

  /** Why the join is not to be a Cartesian product, if so. */
  private def productRefusal: Option[(Reason, String)] =
    join.children.flatMap(Repeatable.except(_)).headOption
      .map(part => (Reason.NotDeterministic, differs(part)))
      .orElse(CartesianTasks.refusal(at.session, join, state).map((Reason.GuardPartitions, _)))

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

  private def record(asked: AskedSelection, outcome: (Reason, Option[String])): Unit =
    memory.once(outcome) { number =>
      at.record(asked.asked, outcome) {
        Subject(
          s"join ${state.id}",
          s"${state.id}-selection-$number",
          joinId = Some(state.id),
          tables = Some(tables),
          sparkAnswer = asked.spark.map(s => JoinSelectionPoint.show(SelectionDecision.of(s).row)),
          sparkStrategy = asked.sparkStrategy,
          chosen = (decision: SelectionDecision) => Some(decision)
        )
      }
    }
}

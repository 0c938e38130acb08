package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.facts.{FactsRow, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.{
  JoinStage,
  JoinState,
  JoinStrategy,
  PruningSides,
  SkewLayout
}
import org.apache.spark.sql.aqepilot.plans.promises.{ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.{Memory, PointRule}
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** What asking about a join gave.
  *
  * @param built
  *   how Spark's own rule split it
  */
final private case class AskedSkew(asked: Asked[SkewDecision], built: SkewLayout, strategy: String)

/** One join of the stage, and what asking about it gave. */
final private case class DecidedSkew(join: BaseJoinExec, state: JoinState, answer: AskedSkew) {

  val facts: FactsRow = new FactsRow(SkewJoinPoint.facts, answer.asked.facts)

  /** The decision, if it can differ from what Spark's own rule made of the join. */
  val toSplit: Option[SkewDecision] = answer.asked.decision.filterNot(_.isSparks(facts))

  def isForced: Boolean = toSplit.exists(_.isForced(facts))

  /** What Spark's own rule goes by; None where it does nothing. */
  def sparkAnswer: Option[String] =
    if (!facts.isTrue("conf.skew_join_enabled")) None
    else Some(SkewJoinPoint.show(SkewDecision.sparks(facts).row))
}

private object SkewDecisions {

  /** The answers about each join. Its state's monitor guards them. */
  val memory = new JoinState.OfPoint(() => new Memory[AskedSkew])
}

/** The joins of one stage at one re-plan.
  *
  * @param isSparks
  *   whether the joins are split, or not, as Spark's own rule alone would have it
  */
final private class SkewDecisions(
    at: PointRule[SkewDecision],
    plan: SparkPlan,
    stage: JoinStage,
    isSparks: => Boolean
) {

  /** The plan with the joins split as decided, or the one that came in. */
  def decided: SparkPlan = {
    val (left, known) = stage.joins
      .flatMap(join => JoinState.of(join).map(join -> _))
      .partition(_._2.isReadTwice)
    left.foreach { case (_, state) => ReadTwice.record(at, tables(state)) }
    val (inSide, free) = known.partition(_._2.prunes.isInSide)
    inSide.foreach { case (_, state) => PruningSides.record(at, tables(state)) }
    val asked = free.flatMap { case (join, state) => ask(join, state) }
    val outcome =
      if (asked.forall(_.toSplit.isEmpty)) SkewOutcome(plan, Reason.Applied, None)
      else if (keeps.nonEmpty) SkewOutcome(plan, keeps.get, keeps.map(SparksTasks.detail))
      else if (!isSparks)
        SkewOutcome(
          plan,
          Reason.OtherExtension,
          Some("the joins are not split, or whole, as Spark's own rule would leave them")
        )
      else
        new SkewSplit(plan, stage, splits(asked), asked.exists(_.isForced), at.guards).outcome
    if (outcome.reason == Reason.Applied) asked.filter(_.isForced).foreach(_.state.force())
    val planned = outcome.plan.collect { case j: BaseJoinExec => j }
    asked.foreach { decided =>
      val join = planned.find(j => JoinState.of(j).contains(decided.state))
      decided.state.skew.planned = join.map(SkewLayout.of)
      decided.state.skew.built = Some(decided.answer.built)
      record(decided, if (decided.toSplit.isDefined) outcome.reason -> outcome.detail else spark)
    }
    outcome.plan
  }

  private lazy val keeps = SparksTasks.of(at, plan).of(stage.root)

  private val spark: (Reason, Option[String]) =
    (Reason.Applied, Some("what the answer says is what Spark's own rule goes by"))

  /** For each shuffle of the stage, how the decision on the join above it splits it. */
  private def splits(asked: Seq[DecidedSkew]): Seq[Option[SideSplits]] =
    stage.shuffles.map { shuffle =>
      for {
        decided <- asked.find(_.join eq shuffle.join)
        decision <- decided.toSplit if shuffle.canSplit
        side <- decision.sides(decided.facts).apply(if (shuffle.isLeft) 0 else 1)
      } yield side
    }

  private def ask(join: BaseJoinExec, state: JoinState): Option[DecidedSkew] =
    state.synchronized {
      val left = stage.of(join, isLeft = true)
      val right = stage.of(join, isLeft = false)
      if (left.isEmpty && right.isEmpty) None
      else {
        val built = SkewLayout.of(join)
        val strategy = JoinStrategy.of(join).getOrElse(join.nodeName)
        val shuffles = stage.shuffles.map(s => (s.stage.id, s.canSplit))
        val isLocal = shuffles.size == 1 && LocalReads.splits(plan, stage)
        val key = at.key((at.executionId, shuffles, strategy, join.joinType, built, isLocal))
        val answer = state.of(SkewDecisions.memory).of(key) {
          val known =
            JoinToSplit(state, join, left, right, stage.shuffles.length, isLocal, built)
          AskedSkew(at.ask()(SkewFacts.all.row(at.query, known)), built, strategy)
        }
        Some(DecidedSkew(join, state, answer))
      }
    }

  private def record(decided: DecidedSkew, outcome: (Reason, Option[String])): Unit = {
    val state = decided.state
    state.synchronized(state.of(SkewDecisions.memory).once(outcome) { number =>
      at.record(decided.answer.asked, outcome) {
        Subject(
          s"join ${state.id}",
          s"${state.id}-skew-$number",
          joinId = Some(state.id),
          tables = tables(state),
          sparkAnswer = decided.sparkAnswer,
          sparkStrategy = Some(decided.answer.built.text(decided.answer.strategy))
        )
      }
    })
  }

  private def tables(state: JoinState): Option[String] =
    stage.joins.find(j => JoinState.of(j).contains(state)).flatMap(_.logicalLink).collect {
      case j: Join => Tables.joined(j.left, j.right)
    }
}

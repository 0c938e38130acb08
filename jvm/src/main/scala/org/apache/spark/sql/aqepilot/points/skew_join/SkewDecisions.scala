package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.facts.{FactsRow, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.{
  AskedSkew,
  JoinStage,
  JoinState,
  JoinStrategy,
  PruningSides,
  SkewLayout
}
import org.apache.spark.sql.aqepilot.plans.promises.{ReadTwice, SparksTasks}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** One join of the stage, and what asking about it gave. */
final private case class DecidedSkew(join: BaseJoinExec, state: JoinState, of: AskedSkew) {

  val facts: FactsRow = new FactsRow(SkewJoinPoint.facts, of.asked.facts)

  /** The decision, if it can differ from what Spark's own rule made of the join. */
  val toSplit: Option[SkewDecision] = of.asked.enforced
    .map { case (_, answer) => SkewDecision.of(answer.asInstanceOf[InternalRow]) }
    .filterNot(_.isSparks(facts))

  def isForced: Boolean = toSplit.exists(_.isForced(facts))

  /** What Spark's own rule goes by; None where it does nothing. */
  def sparkAnswer: Option[String] =
    if (!facts.isTrue("conf.skew_join_enabled")) None
    else Some(SkewJoinPoint.show(SkewDecision.sparks(facts).row))
}

/** The joins of one stage at one re-plan.
  *
  * @param isSparks
  *   whether the joins are split, or not, as Spark's own rule alone would have it
  */
final private class SkewDecisions(
    at: PointRule,
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
    asked.foreach { of =>
      val join = planned.find(j => JoinState.of(j).contains(of.state))
      of.state.skew.planned = join.map(SkewLayout.of)
      of.state.skew.built = Some(of.of.built)
      record(of, if (of.toSplit.isDefined) outcome.reason -> outcome.detail else spark)
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
        of <- asked.find(_.join eq shuffle.join)
        decision <- of.toSplit if shuffle.canSplit
        side <- decision.sides(of.facts).apply(if (shuffle.isLeft) 0 else 1)
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
        val of = state.skew.memory.of(key) {
          val asked = at.ask() {
            new SkewFacts(state, join, left, right, stage.shuffles.length, isLocal, built)
              .row(at.session.sparkContext, at.conf, at.executionId)
          }
          AskedSkew(asked, built, strategy)
        }
        Some(DecidedSkew(join, state, of))
      }
    }

  private def record(of: DecidedSkew, outcome: (Reason, Option[String])): Unit = {
    val state = of.state
    state.synchronized(state.skew.memory.once(outcome) { number =>
      at.record(of.of.asked, outcome) {
        Subject(
          s"join ${state.id}",
          s"${state.id}-skew-$number",
          joinId = Some(state.id),
          tables = tables(state),
          sparkAnswer = of.sparkAnswer,
          sparkStrategy = Some(of.of.built.text(of.of.strategy))
        )
      }
    })
  }

  private def tables(state: JoinState): Option[String] =
    stage.joins.find(j => JoinState.of(j).contains(state)).flatMap(_.logicalLink).collect {
      case j: Join => Tables.joined(j.left, j.right)
    }
}

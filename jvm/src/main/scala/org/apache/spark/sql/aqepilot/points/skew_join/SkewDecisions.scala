package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.decision.{Asked, Asking, Guardrails, PolicySet, QueryFacts}
import org.apache.spark.sql.aqepilot.doors.{FailOpen, Sessions}
import org.apache.spark.sql.aqepilot.log.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.plans.{
  AskedOfJoin,
  JoinStage,
  JoinState,
  JoinStrategy,
  ReadTwice,
  SkewLayout,
  Tables
}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.points.skew_join.{SideSplits, SkewDecision, SkewJoinPoint}
import io.aqepilot.terms.{FactsRow, Reason}

/** What asking about one join gave.
  *
  * @param key
  *   all that the answer depends on
  * @param number
  *   counts the askings of this join
  */
final case class AskedSkew(
    key: Any,
    number: Int,
    asked: Asked,
    built: SkewLayout,
    strategy: String
) extends AskedOfJoin {

  val facts: FactsRow = new FactsRow(SkewJoinPoint.facts, asked.facts)

  val decision: Option[SkewDecision] =
    asked.enforced.map { case (_, answer) => SkewDecision.of(answer.asInstanceOf[InternalRow]) }

  /** The decision, if it can differ from what Spark's own rule made of the join. */
  lazy val toSplit: Option[SkewDecision] = decision.filterNot(_.isSparks(facts))

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
    session: Sessions.Classic,
    set: PolicySet,
    plan: SparkPlan,
    stage: JoinStage,
    isSparks: => Boolean
) {

  private val point = SkewJoinPoint
  private val conf: SQLConf = session.sessionState.conf
  private val executionId = QueryFacts.executionId(session.sparkContext)

  /** The plan with the joins split as decided, or the one that came in. */
  def decided: SparkPlan = {
    val (left, known) = stage.joins
      .flatMap(join => JoinState.of(join).map(join -> _))
      .partition(_._2.isReadTwice)
    left.foreach { case (_, state) => ReadTwice.record(session, point, tables(state)) }
    val asked = known.flatMap { case (join, state) => ask(join, state) }
    val outcome =
      if (asked.forall(_._3.toSplit.isEmpty)) SkewOutcome(plan, Reason.Applied, None)
      else if (!isSparks)
        SkewOutcome(
          plan,
          Reason.OtherExtension,
          Some("the joins are not split, or whole, as Spark's own rule would leave them")
        )
      else {
        lazy val guards = Guardrails.of(conf, session.sparkContext)
        new SkewSplit(plan, stage, splits(asked), asked.exists(isForced), guards).outcome
      }
    if (outcome.reason == Reason.Applied) asked.filter(isForced).foreach(_._2.force())
    val planned = outcome.plan.collect { case j: BaseJoinExec => j }
    asked.foreach { case (_, state, of) =>
      val join = planned.find(j => JoinState.of(j).contains(state))
      state.skew.planned = join.map(SkewLayout.of)
      state.skew.built = Some(of.built)
      record(state, of, if (of.toSplit.isDefined) outcome.reason -> outcome.detail else spark)
    }
    outcome.plan
  }

  private val spark: (Reason, Option[String]) =
    (Reason.Applied, Some("what the answer says is what Spark's own rule goes by"))

  private def isForced(asked: (BaseJoinExec, JoinState, AskedSkew)): Boolean = {
    val (_, _, of) = asked
    of.toSplit.exists(_.isForced(of.facts))
  }

  /** For each shuffle of the stage, how the decision on the join above it splits it. */
  private def splits(asked: Seq[(BaseJoinExec, JoinState, AskedSkew)]): Seq[Option[SideSplits]] =
    stage.shuffles.map { shuffle =>
      for {
        (_, _, of) <- asked.find(_._1 eq shuffle.join)
        decision <- of.toSplit if shuffle.canSplit
        side <- decision.sides(of.facts).apply(if (shuffle.isLeft) 0 else 1)
      } yield side
    }

  private def ask(
      join: BaseJoinExec,
      state: JoinState
  ): Option[(BaseJoinExec, JoinState, AskedSkew)] = state.synchronized {
    val left = stage.of(join, isLeft = true)
    val right = stage.of(join, isLeft = false)
    if (left.isEmpty && right.isEmpty) None
    else {
      val built = SkewLayout.of(join)
      val strategy = JoinStrategy.of(join).getOrElse(join.nodeName)
      val shuffles = stage.shuffles.map(s => (s.stage.id, s.canSplit))
      val isLocal = shuffles.size == 1 && LocalReads.splits(plan, stage)
      val key =
        (
          executionId,
          set,
          shuffles,
          strategy,
          join.joinType,
          built,
          isLocal,
          QueryFacts.conf(conf)
        )
      if (!state.skew.asked.exists(_.key == key)) {
        val number = state.skew.asked.fold(1)(_.number + 1)
        val asked = Asking.of(session, set, point, executionId) {
          new SkewFacts(state, join, left, right, stage.shuffles.length, isLocal, built)
            .row(session.sparkContext, conf, executionId)
        }
        state.skew.asked = Some(AskedSkew(key, number, asked, built, strategy))
      }
      state.skew.asked.collect { case asked: AskedSkew => (join, state, asked) }
    }
  }

  private def record(
      state: JoinState,
      of: AskedSkew,
      outcome: (Reason, Option[String])
  ): Unit = FailOpen("record", ()) {
    val now = Some((of.key, outcome))
    if (state.skew.recorded != now) {
      state.skew.recorded = now
      val subject = Subject(
        s"join ${state.id}",
        s"${state.id}-skew-${of.number}",
        joinId = Some(state.id),
        tables = tables(state),
        sparkAnswer = of.sparkAnswer,
        sparkStrategy = Some(of.built.text(of.strategy))
      )
      DecisionRecord.write(session, point, executionId, subject, of.asked, outcome)
    }
  }

  private def tables(state: JoinState): Option[String] =
    stage.joins.find(j => JoinState.of(j).contains(state)).flatMap(_.logicalLink).collect {
      case j: Join => Tables.described(j.left) + " ⋈ " + Tables.described(j.right)
    }
}

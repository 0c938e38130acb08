package org.apache.spark.sql.aqepilot.rule

import org.apache.spark.sql.aqepilot.spark.engines.Engine
import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, Guardrails, Guards, Health, Verdict}
import org.apache.spark.sql.aqepilot.facts.{FactsRow, LazyRow, Query, QueryFacts}
import org.apache.spark.sql.aqepilot.policy.{
  Asked,
  Asking,
  CompiledPolicy,
  EvaluationFailure,
  PolicySet
}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.run.PoliciesInForce
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.internal.SQLConf

/** What the rule of each decision point does alike, once at each planning: it asks the policies that are in force in
  * the session, and writes down what came of the answers. A rule itself matches, and rewrites.
  */
final class PointRule[D] private (
    val point: DecisionPoint[D],
    val session: Sessions.Classic,
    set: PolicySet
) {

  val conf: SQLConf = session.sessionState.conf

  /** None outside an execution. */
  val executionId: Option[Long] = QueryFacts.executionId(session.sparkContext)

  /** The query that is planned. */
  val query: Query = Query.of(session.sparkContext, conf, executionId)

  /** The guard rails in force. */
  lazy val guards: Guards = Guardrails.of(conf, session.sparkContext)

  /** Whether a policy is to be asked; a rule that also undoes what an earlier one decided runs without. */
  def isAsked: Boolean = set.isAsked(point)

  /** @param of
    *   what the answers depend on beside the policies and the settings that are facts
    */
  def key(facts: Product): PointRule.Key = PointRule.Key(set, query.settings.facts, facts)

  /** Asks about one thing.
    *
    * @param answer
    *   how a policy comes to an answer, where that takes more than these facts
    * @param judge
    *   what is made of an answer, where that takes more
    * @param begun
    *   when the first fact was computed, by `System.nanoTime`, where that was before
    */
  def ask(
      answer: (CompiledPolicy, LazyRow) => Either[EvaluationFailure, Any] = _.eval(_),
      judge: Option[(D, FactsRow, Guards) => Verdict[D]] = None,
      begun: Long = System.nanoTime()
  )(facts: => LazyRow): Asked[D] =
    Asking.of(session, set, point, executionId, answer, judge, begun)(facts)

  /** Keeps a fault of ours in a part of a plan away from the rest of it. */
  def failingOpen[T](unchanged: => T)(body: => T): T =
    DecisionRecord.failingOpen(point, unchanged)(body)

  /** Writes down the answers, and what became of the one to carry out.
    *
    * @param subject
    *   computed later: by what does not change any more, so not by settings
    */
  def record(asked: Asked[D], outcome: (Reason, Option[String]) = PointRule.Applied)(
      subject: => Subject[D]
  ): Unit =
    FailOpen("record", ())(
      DecisionRecord.write(session, point, executionId, subject, asked, outcome)
    )

  /** Writes down the answers, and that the one to carry out was, or what is wrong with the plan that it made.
    *
    * @param fault
    *   of ours; counted and logged
    */
  def recordRewrite(asked: Asked[D], fault: Option[String])(subject: => Subject[D]): Unit = {
    fault.foreach(FailOpen.fault(point.name, _))
    record(asked, fault.fold(PointRule.Applied)(f => (Reason.InvalidRewrite, Some(f))))(subject)
  }

  /** Writes down that nobody could be asked, once for each execution and reason. */
  def undecided(reason: Reason, detail: String, tables: => Option[String]): Unit =
    FailOpen("record", ())(DecisionRecord.undecided(session, point, reason, detail, tables))

  /** Writes down that a part is the engine's already, once for each execution. */
  def undecidedBesideEngine(tables: => Option[String]): Unit = undecided(
    Reason.EngineFirst,
    Engine.reasonFirst(session).getOrElse("another extension's rule has taken it"),
    tables
  )
}

object PointRule {

  /** The outcome of a decision that was carried out. */
  val Applied: (Reason, Option[String]) = (Reason.Applied, None)

  /** All that answers depend on. */
  final case class Key private[rule] (set: PolicySet, settings: InternalRow, facts: Product)

  /** Decides, where the point works on this Spark, the plan is one to decide on, a policy is to be asked and a session
    * is active; `unchanged` elsewhere, and where a fault of ours ends it.
    *
    * @param concerns
    *   whether the plan is one to decide on; cheap, as it is looked at in each planning
    * @param evenUnasked
    *   whether to decide though no policy is to be asked
    */
  def apply[D, T](
      point: DecisionPoint[D],
      unchanged: => T,
      concerns: => Boolean = true,
      evenUnasked: => Boolean = false
  )(decide: PointRule[D] => T): T =
    DecisionRecord.failingOpen(point, unchanged) {
      if (!Health.isLive(point.name) || !concerns) unchanged
      else {
        val set = PoliciesInForce.of(SQLConf.get)
        if (!set.isAsked(point) && !evenUnasked) unchanged
        else Sessions.active.fold(unchanged)(session => decide(new PointRule(point, session, set)))
      }
    }
}

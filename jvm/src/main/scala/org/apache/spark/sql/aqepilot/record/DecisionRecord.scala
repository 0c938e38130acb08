package org.apache.spark.sql.aqepilot.record

import org.apache.spark.sql.aqepilot.decision.{Decided, DecisionPoint, Health, Verdict}
import org.apache.spark.sql.aqepilot.facts.{FactsRow, QueryFacts}
import org.apache.spark.sql.aqepilot.policy.{Asked, PolicyAnswer}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.run.Owners
import org.apache.spark.sql.aqepilot.settings.Mode
import org.apache.spark.sql.aqepilot.spark.{Application, FailOpen, Recent, Sessions}

import io.aqepilot.log.{AqePilotDecision, EventSchema}

/** What a decision is about.
  *
  * @param name
  *   for a person, and unique in its query at its point: `join 3, left side`, `shuffle 4`
  * @param factsId
  *   of the facts that were asked with, unique in the driver
  * @param id
  *   by which it is found in the final plan, where that is no join's
  * @param sparkAnswer
  *   what Spark's own rule says, in the answer's words
  * @param sparkStrategy
  *   what Spark would run without us
  * @param chosen
  *   what the fate of a legal answer is read from, a small value
  */
final case class Subject[-D](
    name: String,
    factsId: String,
    id: Option[Any] = None,
    joinId: Option[Long] = None,
    side: Option[String] = None,
    tables: Option[String] = None,
    sparkAnswer: Option[String] = None,
    sparkStrategy: Option[String] = None,
    chosen: D => Option[Any] = (_: D) => None
)

/** Writes what was decided into the decision log. */
object DecisionRecord {

  // Lazy: `failingOpen` needs this object, also where Spark lacks what this links.
  private lazy val undecidedOf =
    new Application.Value(_ => Recent.set[(Option[Long], String, String)](10000))

  /** One event for each policy that answered, or one that says that none did.
    *
    * @param subject
    *   computed later: by what does not change any more
    * @param outcome
    *   what became of the decision to carry out when it was put into the plan
    */
  def write[D](
      session: Sessions.Classic,
      point: DecisionPoint[D],
      executionId: Option[Long],
      subject: => Subject[D],
      asked: Asked[D],
      outcome: (Reason, Option[String]) = (Reason.Applied, None)
  ): Unit = {
    val log = DecisionLog.of(session.sparkContext)
    val draft = new Draft(session, point, executionId)
    lazy val about = subject
    lazy val fingerprint = new FactsRow(point.facts, asked.facts).string("query.fingerprint")
    lazy val decidedBy = asked.decidedBy

    def event(by: Option[PolicyAnswer[D]], verdict: Verdict[D]): Decided = {
      val shadow = by.exists(_.policy.mode == Mode.Shadow)
      val (reason, detail) =
        if (shadow && verdict.decision.isDefined) (Reason.Shadow, verdict.detail)
        else if (by.isDefined && by == decidedBy) outcome
        else (verdict.reason, verdict.detail)
      val answer = by.flatMap(_.answer.toOption)
      val event = draft.event(
        log.nextDecisionId(),
        reason,
        detail,
        by = by,
        about = Some(about),
        tables = about.tables,
        fingerprint = fingerprint,
        askedMicros = asked.micros
      )
      Decided(
        event,
        about.id,
        verdict.decision.flatMap(_ => answer).flatMap(legal => about.chosen(legal.decision))
      )
    }

    log.decided(
      if (asked.verdicts.isEmpty) Seq(event(None, Verdict(None, Reason.NullAnswer)))
      else asked.verdicts.map { case (by, verdict) => event(Some(by), verdict) },
      FactsText.of(asked.facts, point.facts)
    )
  }

  /** Keeps a fault of ours at a point away from the query, which goes on with `otherwise`, and records it. Where this
    * Spark lacks something, the point is off from now on.
    */
  def failingOpen[T](point: DecisionPoint[_], otherwise: => T)(body: => T): T =
    FailOpen.recover(point.name) { fault =>
      FailOpen("health", ())(Health.after(fault, point.name))
      FailOpen("record", ())(Sessions.active.foreach { session =>
        undecided(session, point, Reason.InternalError, FailOpen.short(fault), None)
      })
      otherwise
    }(body)

  /** Nobody could be asked. Recorded once for each execution, point and reason. */
  def undecided(
      session: Sessions.Classic,
      point: DecisionPoint[_],
      reason: Reason,
      detail: String,
      tables: Option[String]
  ): Unit = {
    val executionId = QueryFacts.executionId(session.sparkContext)
    val known = undecidedOf.of(session.sparkContext)
    if (known.add((executionId, point.name, reason.code))) {
      val log = DecisionLog.of(session.sparkContext)
      val event = new Draft(session, point, executionId)
        .event(log.nextDecisionId(), reason, Some(detail), tables = tables)
      log.decided(Seq(Decided(event)), FactsText.none)
    }
  }

  private val MaxAnswerChars = 2000

  /** Makes the events of decisions that were made at once. */
  final private class Draft(
      session: Sessions.Classic,
      point: DecisionPoint[_],
      executionId: Option[Long]
  ) {

    private val time = System.currentTimeMillis()
    private val owner = Owners.of(session, executionId)

    /** @param by
      *   whose answer it is; none where nobody answered
      * @param about
      *   none where nobody could be asked
      */
    def event(
        id: Long,
        reason: Reason,
        detail: Option[String],
        by: Option[PolicyAnswer[_]] = None,
        about: Option[Subject[_]] = None,
        tables: Option[String],
        fingerprint: Option[String] = None,
        askedMicros: Double = 0.0
    ): AqePilotDecision = AqePilotDecision(
      schemaVersion = EventSchema.Version,
      time = time,
      decisionId = id,
      sessionId = owner,
      executionId = executionId,
      fingerprint = fingerprint,
      point = point.name,
      joinId = about.flatMap(_.joinId),
      side = about.flatMap(_.side),
      tables = tables,
      factsId = about.fold("")(_.factsId),
      facts = None,
      policy = by.map(_.policy.name),
      revision = by.map(_.policy.revision),
      mode = by.map(_.policy.mode.name),
      answer = by.flatMap(_.answer.toOption.map(_.text.take(MaxAnswerChars))),
      sparkAnswer = about.flatMap(_.sparkAnswer),
      sparkStrategy = about.flatMap(_.sparkStrategy),
      applied = reason == Reason.Applied,
      reason = reason.code,
      detail = detail,
      askedMicros = askedMicros,
      subject = about.map(_.name)
    )
  }
}

package org.apache.spark.sql.aqepilot.rewrite

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.aqepilot.{FailOpen, Mode, PolicyAnswer, PolicySet, Sessions}
import org.apache.spark.sql.aqepilot.facts.{JoinFacts, JoinSide, QueryFacts, Tables}
import org.apache.spark.sql.aqepilot.log.DecisionLog
import org.apache.spark.sql.catalyst.plans.logical.Join

import io.aqepilot.decision.{DynamicJoinSelectionPoint, FactsRow, Reason, Verdict}
import io.aqepilot.log.{AqePilotDecision, EventSchema, FactsJson}

/** Writes what was decided on joins into the decision log, once for each change. */
private object JoinRecord {

  private val point = DynamicJoinSelectionPoint
  private val told = ConcurrentHashMap.newKeySet[(String, Long, String)]()

  /** @param lost
    *   why this side's word gave way to the other side's, if it did
    */
  def side(
      session: Sessions.Classic,
      state: JoinState,
      memory: SideState,
      executionId: Option[Long],
      left: JoinSide,
      right: JoinSide,
      isLeft: Boolean,
      lost: Option[Reason]
  ): Unit = memory.asked.foreach { asked =>
    val now = (asked.key, lost)
    if (!memory.recorded.contains(now)) {
      memory.recorded = Some(now)
      val log = DecisionLog.get(session.sparkContext)
      lazy val json = FactsJson.write(asked.facts, point.facts)
      val factsId = s"${state.id}-${if (isLeft) "left" else "right"}-${asked.number}"
      val fingerprint = new FactsRow(point.facts, asked.facts).string("query.fingerprint")
      val enforced = asked.enforced.map(_._1)

      def event(answer: Option[PolicyAnswer], verdict: Verdict): AqePilotDecision = {
        val shadow = answer.exists(_.policy.mode == Mode.Shadow)
        val isLoser = enforced.isDefined && answer == enforced && lost.isDefined
        val reason =
          if (shadow && verdict.word.isDefined) Reason.Shadow
          else if (isLoser) lost.get
          else verdict.reason
        blank(session, executionId).copy(
          fingerprint = fingerprint,
          joinId = Some(state.id),
          side = Some(if (isLeft) "left" else "right"),
          tables = Some(tables(left, right)),
          factsId = factsId,
          facts = Some(json),
          policy = answer.map(_.policy.name),
          revision = answer.map(_.policy.revision),
          mode = answer.fold(Mode.Enforce.name)(_.policy.mode.name),
          answer = answer.flatMap(_.value.toOption).map(_.toString.take(200)),
          sparkAnswer = asked.sparkWord,
          sparkStrategy = asked.sparkStrategy,
          applied = reason == Reason.Applied,
          reason = reason.code,
          detail = verdict.detail.filterNot(_ => isLoser),
          askedMicros = asked.micros
        )
      }

      if (asked.verdicts.isEmpty) log.decided(event(None, Verdict(None, Reason.NullAnswer)))
      else asked.verdicts.foreach { case (a, v) => log.decided(event(Some(a), v)) }
    }
  }

  /** A join that has no identity: left to Spark. */
  def untracked(
      session: Sessions.Classic,
      join: Join,
      left: JoinSide,
      right: JoinSide,
      set: PolicySet
  ): Unit = if (set.at(point).nonEmpty) {
    val what = s"a ${JoinFacts.name(join.joinType)} join made by a re-plan"
    undecided(session, Reason.UntrackedJoin, what, Some(tables(left, right)))
  }

  /** A fault of ours: the plan that came in was kept. */
  def failed(session: Sessions.Classic, fault: Throwable): Unit = FailOpen("record", ())(
    undecided(session, Reason.InternalError, FailOpen.short(fault), None)
  )

  /** Once for each execution and reason. */
  private def undecided(
      session: Sessions.Classic,
      reason: Reason,
      detail: String,
      tables: Option[String]
  ): Unit = {
    val executionId = QueryFacts.executionId(session.sparkContext)
    if (told.size > 10000) told.clear()
    if (told.add((session.sparkContext.applicationId, executionId.getOrElse(-1L), reason.code))) {
      DecisionLog
        .get(session.sparkContext)
        .decided(
          blank(session, executionId)
            .copy(tables = tables, reason = reason.code, detail = Some(detail))
        )
    }
  }

  private def blank(session: Sessions.Classic, executionId: Option[Long]) = AqePilotDecision(
    schemaVersion = EventSchema.Version,
    time = System.currentTimeMillis(),
    decisionId = DecisionLog.get(session.sparkContext).nextDecisionId(),
    sessionId = session.sessionUUID,
    executionId = executionId,
    fingerprint = None,
    point = point.name,
    joinId = None,
    side = None,
    tables = None,
    factsId = "",
    facts = None,
    policy = None,
    revision = None,
    mode = Mode.Enforce.name,
    answer = None,
    sparkAnswer = None,
    sparkStrategy = None,
    applied = false,
    reason = "",
    detail = None,
    askedMicros = 0.0
  )

  private def tables(left: JoinSide, right: JoinSide): String =
    Tables.described(left.plan) + " ⋈ " + Tables.described(right.plan)
}

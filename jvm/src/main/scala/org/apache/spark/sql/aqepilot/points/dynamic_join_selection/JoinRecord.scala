package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.PolicySet
import org.apache.spark.sql.aqepilot.doors.Sessions
import org.apache.spark.sql.aqepilot.log.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.plans.{JoinFacts, JoinSide, JoinState, SideState, Tables}
import org.apache.spark.sql.catalyst.plans.logical.Join

import io.aqepilot.points.dynamic_join_selection.DynamicJoinSelectionPoint
import io.aqepilot.terms.Reason

/** Writes what was decided on joins into the decision log, once for each change. */
private object JoinRecord {

  private val point = DynamicJoinSelectionPoint

  /** @param lost
    *   why this side's word gave way to the other side's, or did not hold, if so
    */
  def side(
      session: Sessions.Classic,
      state: JoinState,
      memory: SideState,
      executionId: Option[Long],
      left: JoinSide,
      right: JoinSide,
      isLeft: Boolean,
      lost: Option[(Reason, Option[String])]
  ): Unit = memory.asked.foreach { of =>
    val now = (of.key, lost)
    if (!memory.recorded.contains(now)) {
      memory.recorded = Some(now)
      val side = if (isLeft) "left" else "right"
      val subject = Subject(
        s"join ${state.id}, $side side",
        s"${state.id}-$side-${of.number}",
        joinId = Some(state.id),
        side = Some(side),
        tables = Some(tables(left, right)),
        sparkAnswer = of.sparkWord,
        sparkStrategy = of.sparkStrategy,
        chosen = word => Some(word.toString)
      )
      val outcome = lost.getOrElse((Reason.Applied, None))
      DecisionRecord.write(session, point, executionId, subject, of.asked, outcome)
    }
  }

  /** A join that has no identity: left to Spark. */
  def untracked(
      session: Sessions.Classic,
      join: Join,
      left: JoinSide,
      right: JoinSide,
      set: PolicySet
  ): Unit = if (set.isAsked(point)) {
    val what = s"a ${JoinFacts.name(join.joinType)} join made by a re-plan"
    DecisionRecord.undecided(session, point, Reason.UntrackedJoin, what, Some(tables(left, right)))
  }

  /** Both sides' tables, e.g. `lineitem ⋈ orders`. */
  def tables(left: JoinSide, right: JoinSide): String =
    Tables.described(left.plan) + " ⋈ " + Tables.described(right.plan)
}

package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.{Decided, Selection}
import org.apache.spark.sql.aqepilot.plans.joins.{JoinFateReader, JoinState, JoinStrategy}
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.log.AqePilotFate

/** What became of the strategies that joins were planned with, read off the final plan as [[JoinFates]] does. */
object SelectionFates extends JoinFateReader {

  override def read(plan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] = {
    val joins: Map[Long, (SparkPlan, JoinState)] = nodes(plan).flatMap { p =>
      for {
        _ <- JoinStrategy.of(p)
        state <- JoinState.of(p)
      } yield state.id -> ((p, state))
    }.toMap
    val isLast = stands(decisions)
    decisions.filter(d => d.event.applied && d.event.joinId.isDefined).map { d =>
      val ofJoin = joins.get(d.event.joinId.get)
      val strategy = ofJoin.flatMap { case (join, _) => JoinStrategy.of(join) }
      val fate = ofJoin match {
        case Some((join, state)) =>
          val ran = JoinStrategy.selection(join)
          if (ran.exists(isMet(d, _)) || ran.exists(state.selected.contains) && isLast(d))
            if (strategy == d.event.sparkStrategy) Fate.NoChange else Fate.Adopted
          else if (isLast(d)) Fate.RefusedByCost
          else Fate.Superseded
        case None => Fate.Gone
      }
      AqePilotFate(d.event.decisionId, fate.code, strategy)
    }
  }

  /** Whether a join runs as an answer says, be it that a later re-plan without one left it so. */
  private def isMet(d: Decided, ran: Selection): Boolean = d.chosen.exists {
    case decision: SelectionDecision => decision.isMetBy(ran)
    case _                           => false
  }
}

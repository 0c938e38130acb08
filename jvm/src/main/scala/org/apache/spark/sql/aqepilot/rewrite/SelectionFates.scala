package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.decision.{Fate, Selection}
import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** What became of the strategies that joins were planned with, read off the final plan as [[JoinFates]] does. */
object SelectionFates extends FateReader {

  override def read(plan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate] = {
    val joins: Map[Long, (SparkPlan, JoinState)] = nodes(plan).flatMap { p =>
      for {
        _ <- JoinStrategy.of(p)
        state <- JoinState.of(p)
      } yield state.id -> ((p, state))
    }.toMap
    val isLast = stands(decisions)
    decisions.filter(d => d.applied && d.joinId.isDefined).map { d =>
      val found = joins.get(d.joinId.get)
      val strategy = found.flatMap(f => JoinStrategy.of(f._1))
      val fate = found match {
        case Some((join, state)) =>
          val ran = JoinStrategy.selection(join)
          if (
            ran.exists(isAsSaid(d, _)) || ran.exists(state.selection.inForce.contains) && isLast(d)
          )
            if (strategy == d.sparkStrategy) Fate.NoChange else Fate.Adopted
          else if (isLast(d)) Fate.RefusedByCost
          else Fate.Superseded
        case None => Fate.Superseded
      }
      AqePilotFate(d.decisionId, fate.code, strategy)
    }
  }

  /** Whether a join runs as an answer says, be it that a later re-plan without one left it so. */
  private def isAsSaid(d: AqePilotDecision, ran: Selection): Boolean = d.answer.exists { answer =>
    def says(field: String, value: Option[String]) =
      !answer.contains(s""""$field":""") || value.exists(v => answer.contains(s""""$field":"$v""""))
    says("strategy", Some(ran.strategy)) && says("build_side", ran.buildSide)
  }
}

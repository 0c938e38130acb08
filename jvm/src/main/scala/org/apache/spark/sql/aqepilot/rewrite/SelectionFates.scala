package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.decision.Fate
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
        case Some((join, state)) if isLast(d) =>
          if (!JoinStrategy.selection(join).exists(state.selection.inForce.contains))
            Fate.RefusedByCost
          else if (strategy == d.sparkStrategy) Fate.NoChange
          else Fate.Adopted
        case _ => Fate.Superseded
      }
      AqePilotFate(d.decisionId, fate.code, strategy)
    }
  }
}

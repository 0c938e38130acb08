package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.Decided
import org.apache.spark.sql.aqepilot.plans.joins.{JoinFateReader, JoinState, JoinStrategy}
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.log.AqePilotFate

/** What became of the decisions on joins, read off the final plan.
  *
  * A join is found there by its logical link, in subqueries and stages too. One that is gone was replaced by
  * something else, such as an empty relation, or its result was reused from an equal one. A decision that was
  * made again with the same answer shares the fate of the later one.
  */
object JoinFates extends JoinFateReader {

  override def read(plan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] = {
    val applied = decisions.filter(d => d.event.applied && d.event.joinId.isDefined)
    if (applied.isEmpty) Nil
    else {
      val joins: Map[Long, (String, JoinState)] = nodes(plan).flatMap { p =>
        for {
          strategy <- JoinStrategy.of(p)
          state <- JoinState.of(p)
        } yield state.id -> ((strategy, state))
      }.toMap
      val isLast = stands(decisions)
      applied.map { d =>
        val join = joins.get(d.event.joinId.get)
        val fate = join.fold(Fate.Gone) { case (strategy, state) =>
          if (isLast(d)) fateOf(d, strategy, state) else Fate.Superseded
        }
        AqePilotFate(d.event.decisionId, fate.code, join.map(_._1))
      }
    }
  }

  private def fateOf(d: Decided, strategy: String, state: JoinState) = {
    def satisfied(by: String) =
      d.chosen.exists {
        case SideHint(word) => JoinStrategy.satisfies(by, word, d.event.side.contains("left"))
        case _              => false
      }
    if (satisfied(strategy)) {
      if (d.event.sparkStrategy.contains(strategy)) Fate.NoChange else Fate.Adopted
    } else if (JoinMemory.of(state).planned.exists(satisfied)) Fate.RefusedByCost
    else Fate.NoChange
  }
}

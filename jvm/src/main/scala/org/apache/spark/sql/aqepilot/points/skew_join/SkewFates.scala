package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.decision.Decided
import org.apache.spark.sql.aqepilot.plans.joins.{
  JoinFateReader,
  JoinState,
  JoinStrategy,
  SkewLayout,
  SkewState
}
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.log.AqePilotFate

/** What became of the decisions at `skew_join`, read off the reads of the joins in the final plan.
  *
  * A decision that was made again with the same answer shares the fate of the later one; a join that is gone was
  * replaced by something else, or its result was reused.
  */
object SkewFates extends JoinFateReader {

  override def read(plan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] = {
    val applied = decisions.filter(d => d.event.applied && d.event.joinId.isDefined)
    if (applied.isEmpty) Nil
    else {
      val joins = nodes(plan)
        .filter(JoinStrategy.isJoin)
        .flatMap(j => JoinState.of(j).map(state => state.id -> ((j, state))))
        .toMap
      val isLast = stands(decisions)
      applied.map { d =>
        val ran = joins.get(d.event.joinId.get)
        val fate = ran.fold(Fate.Gone) { case (join, state) =>
          if (isLast(d)) fateOf(SkewLayout.of(join), state.skew) else Fate.Superseded
        }
        val strategy = ran.map { case (join, _) =>
          SkewLayout.of(join).text(JoinStrategy.of(join).getOrElse(join.nodeName))
        }
        AqePilotFate(d.event.decisionId, fate.code, strategy)
      }
    }
  }

  private def fateOf(last: SkewLayout, state: SkewState) = {
    val isPlanned = state.planned.exists(_.splitsAs(last))
    if (isPlanned && state.built.exists(_.splitsAs(last))) Fate.NoChange
    else if (isPlanned) Fate.Adopted
    else Fate.RefusedByCost
  }
}

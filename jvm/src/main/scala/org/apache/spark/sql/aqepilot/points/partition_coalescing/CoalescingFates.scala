package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.decision.{Decided, FateReader}
import org.apache.spark.sql.aqepilot.plans.shuffles.CoalesceGroups
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec

import io.aqepilot.log.AqePilotFate

/** What became of the decisions on groups of shuffles, read off the final plan.
  *
  * A group is found there by its shuffles, in the plans of all stages, subqueries included. One that is gone belonged
  * to a stage that was dropped, for an equal one was there already.
  */
object CoalescingFates extends FateReader {

  override def read(plan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] = {
    val applied = decisions.filter(_.event.applied)
    if (applied.isEmpty) Nil
    else {
      val strategies =
        stagePlans(plan).flatMap(CoalesceGroups.of).map(g => g.key -> g.strategy).toMap[Any, String]
      applied.map { d =>
        val strategy = d.id.flatMap(strategies.get)
        val fate = strategy match {
          case None                                         => Fate.Gone
          case Some(s) if d.event.sparkStrategy.contains(s) => Fate.NoChange
          case Some(_)                                      => Fate.Adopted
        }
        AqePilotFate(d.event.decisionId, fate.code, strategy)
      }
    }
  }

  /** The plan of every stage: what each exchange runs, and the result; those of tables that are cached, too. */
  private def stagePlans(plan: SparkPlan): Seq[SparkPlan] =
    plan +: nodes(plan).collect {
      case a: AdaptiveSparkPlanExec => a.executedPlan
      case s: QueryStageExec        => s.plan
      case c: InMemoryTableScanExec => c.relation.cachedPlan
    }
}

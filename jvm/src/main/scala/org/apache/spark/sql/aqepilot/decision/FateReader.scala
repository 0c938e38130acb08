package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.settings.Mode
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec

import io.aqepilot.log.AqePilotFate

/** Says what became of decisions, from the plan that was executed in the end. */
trait FateReader extends AdaptiveSparkPlanHelper {

  /** Called on the listener's thread, under the query's settings, for a query that succeeded.
    *
    * @param finalPlan
    *   the query's `executedPlan`: the adaptive nodes in it (below a command, too) are final
    * @param decisions
    *   all of this execution, in order, without their facts
    */
  def read(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate]

  /** Which decisions were made on a plan before its query ran: by `explain`, which plans it already.
    *
    * @param planned
    *   all nodes of that plan, as it was planned first and as it ran
    * @param decisions
    *   all without an execution that no query has claimed
    */
  def claimed(planned: Seq[SparkPlan], decisions: Seq[Decided]): Seq[Decided] = Nil

  /** All that ran: in stages and subqueries, too, and beneath tables that are cached, which run with the first
    * query that reads them.
    */
  final protected def nodes(plan: SparkPlan): Seq[SparkPlan] = {
    val here = collectWithSubqueries(plan) { case p => p }
    here ++ here.collect { case c: InMemoryTableScanExec => c.relation.cachedPlan }.flatMap(nodes)
  }

  /** Whether a decision on a join, or its like, is the last one there: the same answer again shares its fate. */
  final protected def stands(decisions: Seq[Decided]): Decided => Boolean = {
    val latest = decisions.map(_.event)
      .filter(d => d.joinId.isDefined && !d.mode.contains(Mode.Shadow.name))
      .groupBy(d => (d.joinId, d.side))
      .map { case (join, there) => join -> there.maxBy(_.decisionId) }
    d =>
      latest.get((d.event.joinId, d.event.side)).exists { last =>
        last.applied && last.answer == d.event.answer
      }
  }
}

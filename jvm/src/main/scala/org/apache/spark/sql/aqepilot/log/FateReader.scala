package org.apache.spark.sql.aqepilot.log

import io.aqepilot.log.{AqePilotDecision, AqePilotFate}
import org.apache.spark.sql.execution.SparkPlan

/** Says what became of decisions, from the plan that was executed in the end. */
trait FateReader {

  /** Called on the listener's thread, under the query's settings, for a query that succeeded.
    *
    * @param finalPlan
    *   the query's `executedPlan`: the adaptive nodes in it (below a command, too) are final
    * @param decisions
    *   all of this execution, in order, without their facts
    */
  def read(finalPlan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate]
}

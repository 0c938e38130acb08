package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.aqepilot.decision.{Decided, FateReader}
import org.apache.spark.sql.execution.SparkPlan

/** Reads the fates of decisions on joins, which a plan has by their ids. */
trait JoinFateReader extends FateReader {

  override def claimed(planned: Seq[SparkPlan], decisions: Seq[Decided]): Seq[Decided] = {
    val joins = planned.flatMap(JoinState.of(_).map(_.id)).toSet
    decisions.filter(_.event.joinId.exists(joins.contains))
  }
}

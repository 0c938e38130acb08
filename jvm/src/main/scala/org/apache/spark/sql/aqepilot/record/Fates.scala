package org.apache.spark.sql.aqepilot.record

import org.apache.spark.sql.aqepilot.decision.{Decided, DecisionPoints, FateReader, Health}
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec

import io.aqepilot.log.AqePilotFate

/** What became of the decisions of all points. */
object Fates extends FateReader {

  override def read(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] =
    byPoint(decisions)(_.read(finalPlan, _))

  /** Decisions that were made on a plan which has run, of those that no query has claimed. */
  def claimed(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[Decided] = {
    val all = nodes(finalPlan)
    val initial = all.collect { case a: AdaptiveSparkPlanExec => a.initialPlan }.flatMap(nodes)
    byPoint(decisions)(_.claimed(all ++ initial, _))
  }

  private def byPoint[T](decisions: Seq[Decided])(read: (FateReader, Seq[Decided]) => Seq[T]) =
    for {
      point <- DecisionPoints.all if Health.isRightJar
      made = decisions.filter(_.event.point == point.name) if made.nonEmpty
      result <- FailOpen("fates", Seq.empty[T])(read(point.fates, made))
    } yield result
}

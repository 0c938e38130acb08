package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.decision.{Fate, JoinReorderPoint}
import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** What became of orders of joins: read off the final plan's joins, bottom up. */
object OrderFates extends FateReader {

  /** How the subjects of these decisions begin; the chain's id follows. */
  val Subject = "join order "

  override def read(finalPlan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate] = {
    val marks = nodes(finalPlan).flatMap(mark(_: SparkPlan)).distinct.groupBy(_._1)
    decisions.filter(_.applied).map { d =>
      val joined = id(d).flatMap(marks.get).map(_.map(_._2).reverse)
      val asked =
        d.answer.toSeq.flatMap(_.stripPrefix("[").stripSuffix("]").split(",")).map(_.toLong)
      val ran = joined.map(ps => asked.filterNot(ps.contains) ++ ps).map(_.mkString("[", ",", "]"))
      val fate =
        if (d.answer == d.sparkAnswer) Fate.NoChange
        else if (ran.isDefined && ran == d.answer) Fate.Adopted
        else Fate.Superseded
      AqePilotFate(d.decisionId, fate.code, if (fate == Fate.NoChange) d.sparkStrategy else ran)
    }
  }

  def id(d: AqePilotDecision): Option[Long] =
    if (d.point != JoinReorderPoint.name) None
    else d.subject.filter(_.startsWith(Subject)).map(_.stripPrefix(Subject).toLong)

  /** The chain that a physical join belongs to, and the relation that it joins. */
  def mark(plan: SparkPlan): Option[(Long, Long)] =
    JoinStrategy.of(plan).flatMap(_ => plan.logicalLink).flatMap(mark(_: LogicalPlan))

  private def mark(join: LogicalPlan): Option[(Long, Long)] =
    join.getTagValue(ReorderJoins.tag).map(m => (m(0), m(1)))
}

package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.decision.{Decided, FateReader}
import org.apache.spark.sql.aqepilot.plans.joins.JoinStrategy
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.log.AqePilotFate

/** What became of orders of joins: read off the final plan's joins, bottom up. */
object OrderFates extends FateReader {

  /** Of the chain that a decision is about. */
  final case class ChainId(id: Long)

  override def read(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] = {
    val marks = nodes(finalPlan).flatMap(mark(_: SparkPlan)).distinct.groupBy(_._1)
    decisions.filter(_.event.applied).map { d =>
      val decided = d.chosen.collect { case chosen: WholeOrder => chosen.order }.getOrElse(Nil)
      val ran = id(d).flatMap(marks.get).map { joined =>
        val positions = joined.map(_._2.toInt).reverse
        decided.filterNot(positions.contains) ++ positions
      }
      val fate =
        if (decided == decided.indices) Fate.NoChange
        else if (ran.contains(decided)) Fate.Adopted
        else if (ran.isEmpty) Fate.Gone
        else Fate.Superseded
      val strategy = ran.map(_.mkString("[", ",", "]"))
      AqePilotFate(
        d.event.decisionId,
        fate.code,
        if (fate == Fate.NoChange) d.event.sparkStrategy else strategy
      )
    }
  }

  override def claimed(planned: Seq[SparkPlan], decisions: Seq[Decided]): Seq[Decided] = {
    val chains = planned.flatMap(mark(_: SparkPlan).map(_._1)).toSet
    decisions.filter(id(_).exists(chains.contains))
  }

  def id(d: Decided): Option[Long] = d.id.collect { case ChainId(id) => id }

  /** The chain that a physical join belongs to, and the relation that it joins. */
  def mark(plan: SparkPlan): Option[(Long, Long)] =
    JoinStrategy.of(plan).flatMap(_ => plan.logicalLink).flatMap(mark(_: LogicalPlan))

  private def mark(join: LogicalPlan): Option[(Long, Long)] =
    join.getTagValue(ReorderJoins.tag).map(m => (m(0), m(1)))
}

package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import org.apache.spark.sql.aqepilot.decision.{Decided, FateReader}
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

import io.aqepilot.log.AqePilotFate

/** What became of numbers of partitions: found on the final plan's shuffles, by the id of their group. */
object ShuffleFates extends FateReader {

  /** Of the group that a decision is about. */
  final case class ShuffleId(id: Long)

  def strategy(number: Int): String = s"$number partitions"

  /** The id of the group that a decision is about. */
  def id(d: Decided): Option[Long] =
    d.id.collect { case ShuffleId(id) => id }

  override def claimed(planned: Seq[SparkPlan], decisions: Seq[Decided]): Seq[Decided] = {
    val shuffles = planned.flatMap(_.getTagValue(SetShufflePartitions.tag)).toSet
    decisions.filter(id(_).exists(shuffles.contains))
  }

  override def read(finalPlan: SparkPlan, decisions: Seq[Decided]): Seq[AqePilotFate] = {
    val ran = nodes(finalPlan).collect { case e: ShuffleExchangeLike =>
      e.getTagValue(SetShufflePartitions.tag).map(_ -> strategy(e.outputPartitioning.numPartitions))
    }.flatten.toMap
    decisions.filter(_.event.applied).map { d =>
      val number = id(d).flatMap(ran.get)
      val fate = number match {
        case None                                         => Fate.Gone
        case Some(n) if d.event.sparkStrategy.contains(n) => Fate.NoChange
        case Some(_)                                      => Fate.Adopted
      }
      AqePilotFate(d.event.decisionId, fate.code, number)
    }
  }
}

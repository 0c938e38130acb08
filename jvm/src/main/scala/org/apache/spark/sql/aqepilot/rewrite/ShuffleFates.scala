package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

import io.aqepilot.decision.{Fate, ShufflePartitionsPoint}
import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** What became of numbers of partitions: found on the final plan's shuffles, by the id of their group. */
object ShuffleFates extends FateReader {

  /** How the subjects of these decisions begin; the group's id follows. */
  val Subject = "shuffle "

  def strategy(number: Int): String = s"$number partitions"

  /** The id of the group that a decision is about. */
  def id(d: AqePilotDecision): Option[Long] =
    if (d.point != ShufflePartitionsPoint.name) None
    else d.subject.filter(_.startsWith(Subject)).map(_.stripPrefix(Subject).toLong)

  override def read(finalPlan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate] = {
    val ran = nodes(finalPlan).collect { case e: ShuffleExchangeExec =>
      e.getTagValue(SetShufflePartitions.tag).map(_ -> strategy(e.outputPartitioning.numPartitions))
    }.flatten.toMap
    decisions.filter(_.applied).map { d =>
      val found = id(d).flatMap(ran.get)
      val fate = found match {
        case None                                   => Fate.Superseded
        case Some(n) if d.sparkStrategy.contains(n) => Fate.NoChange
        case Some(_)                                => Fate.Adopted
      }
      AqePilotFate(d.decisionId, fate.code, found)
    }
  }
}

package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.log.FateReader
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

import io.aqepilot.decision.Fate
import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** What became of numbers of partitions: found on the final plan's shuffles, by the id of their group. */
object ShuffleFates extends FateReader {

  /** How the subjects of these decisions begin; the group's id follows. */
  val Subject = "shuffle "

  def strategy(number: Int): String = s"$number partitions"

  override def read(finalPlan: SparkPlan, decisions: Seq[AqePilotDecision]): Seq[AqePilotFate] = {
    val ran = nodes(finalPlan).collect { case e: ShuffleExchangeExec =>
      e.getTagValue(SetShufflePartitions.tag).map(_ -> strategy(e.outputPartitioning.numPartitions))
    }.flatten.toMap
    decisions.filter(_.applied).map { d =>
      val found = d.subject.map(_.stripPrefix(Subject).toLong).flatMap(ran.get)
      val fate = found match {
        case None                                   => Fate.Superseded
        case Some(n) if d.sparkStrategy.contains(n) => Fate.NoChange
        case Some(_)                                => Fate.Adopted
      }
      AqePilotFate(d.decisionId, fate.code, found)
    }
  }
}

package org.apache.spark.sql.aqepilot.history

import java.lang.{Long => JLong}

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.spark.Recent

/** What the driver's own queries measured: the newest signatures, and the newest runs of each. */
final private[history] class OwnRuns {
  import OwnRuns._

  private val known =
    Recent.map[(JLong, Boolean, String), mutable.Queue[MeasuredRun]](MaxSignatures)

  def signatures: Int = known.size

  /** Adds what a query measured that has ended. */
  def add(same: Long, shape: Long, kind: String, run: MeasuredRun): Unit = synchronized {
    Seq((same, true), (shape, false)).foreach { case (signature, isSame) =>
      val runs = known.computeIfAbsent((signature, isSame, kind), _ => mutable.Queue.empty)
      runs += run
      if (runs.size > MaxRuns) runs.dequeue()
    }
  }

  /** Of the same sub-plan, else of its shape. */
  def find(same: Long, shape: Long, kind: String): Option[PastRuns] = synchronized {
    def of(signature: Long, isSame: Boolean) =
      Option(known.get((signature, isSame, kind))).map { runs =>
        new PastRuns(isSame, PastRuns.figures(runs.toSeq), 0)
      }
    of(same, isSame = true).orElse(of(shape, isSame = false))
  }
}

private[history] object OwnRuns {
  private val MaxSignatures = 20000
  private val MaxRuns = 10
}

package org.apache.spark.sql.aqepilot.history

import scala.collection.mutable

/** Makes a pack of rows that come sorted by signature.
  *
  * Of each form it keeps the most signatures that it may, those whose newest run is the newest.
  *
  * @param most
  *   signatures of one form
  */
final private[history] class PackBuilder(most: Int = PackBuilder.MaxSignatures) {
  import PackBuilder._

  private var current: Option[Long] = None
  private val runs = mutable.LinkedHashMap.empty[(Boolean, String), mutable.Buffer[MeasuredRun]]
  private val entries = Map(true -> new Entries(most), false -> new Entries(most))
  private val held = Map(true -> mutable.Buffer.empty[Held], false -> mutable.Buffer.empty[Held])

  /** Adds what one run measured. */
  def add(signature: Long, isSame: Boolean, kind: String, run: MeasuredRun): Unit = {
    moveTo(signature)
    val known = runs.getOrElseUpdate((isSame, kind), mutable.Buffer.empty)
    NotAPack.unless(known.size < MaxRuns, s"a signature has more than $MaxRuns runs")
    known += run
  }

  def hold(signature: Long, isSame: Boolean, until: Long, reason: String): Unit = {
    moveTo(signature)
    val all = held(isSame)
    if (all.size < most) all += Held(signature, until, reason.take(MaxReasonChars))
  }

  def pack: Pack = {
    flush()
    def form(isSame: Boolean) = {
      val byKind = entries(isSame).kept.groupBy(_.kind).map { case (kind, ofKind) =>
        kind -> new Pack.Table(
          ofKind.map(_.signature).toArray,
          Array.concat(ofKind.map(_.figures): _*)
        )
      }
      // Of two rows of a signature the one that holds longer.
      val longest = held(isSame).groupBy(_.signature).values.map(_.maxBy(_.until))
      new Pack.Form(isSame, byKind, longest.toIndexedSeq.sortBy(_.signature))
    }
    new Pack(form(isSame = true), form(isSame = false))
  }

  private def moveTo(signature: Long): Unit = if (!current.contains(signature)) {
    NotAPack.unless(current.forall(_ < signature), "its rows are not sorted by signature")
    flush()
    current = Some(signature)
  }

  private def flush(): Unit = {
    for (signature <- current; ((isSame, kind), measured) <- runs)
      entries(isSame).add(Entry(signature, kind, PastRuns.figures(measured.toSeq)))
    runs.clear()
  }
}

private[history] object PackBuilder {

  /** Of each form: 100,000 sub-plans have as many of either, in 32 MB. */
  val MaxSignatures = 100000
  private val MaxRuns = 1000
  private val MaxReasonChars = 500

  final private case class Entry(signature: Long, kind: String, figures: Array[Long]) {
    def newest: Long = new PastRuns(true, figures, 0).newest
  }

  /** In the order in which they came. */
  final private class Entries(most: Int) {
    private var all = mutable.ArrayBuffer.empty[Entry]

    def add(entry: Entry): Unit = {
      all += entry
      if (all.size > most + most / 4) all = newest
    }

    def kept: Seq[Entry] = newest.toSeq

    private def newest =
      if (all.size <= most) all
      else {
        val times = all.map(_.newest).sorted
        val least = times(times.size - most)
        // As many of the oldest that are kept as there is room for.
        var equal = most - times.count(_ > least)
        all.filter { entry =>
          entry.newest > least || (entry.newest == least && { equal -= 1; equal >= 0 })
        }
      }
  }
}

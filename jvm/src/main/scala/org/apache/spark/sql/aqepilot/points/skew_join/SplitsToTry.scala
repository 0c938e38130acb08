package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.facts.FactsRow

/** How a join's large partitions may be split: into few or many parts, on one side or both; or not at all. */
private[skew_join] object SplitsToTry {

  /** A partition of so many medians is large. */
  private val Medians = 2L

  def of(facts: FactsRow): Iterator[SkewDecision] = {
    def large(side: String, parts: Int): SideDecision = {
      val known = for {
        median <- facts.long(s"$side.median_bytes")
        most <- facts.long(s"$side.max_bytes")
        if facts.isTrue(s"$side.can_split") && most > Medians * median
      } yield SideDecision(
        Some(math.max(1L, Medians * median)),
        Some(math.max(1L, most / parts)),
        None
      )
      known.getOrElse(SkewDecision.none.left)
    }
    val whole = SkewDecision.none.copy(maxSplits = Some(1))
    val split = for {
      parts <- Iterator(4, 2, 8, 16)
      (left, right) = (large("left", parts), large("right", parts))
      sides <- Iterator((left, right), (left, whole.right), (whole.left, right))
      force <- Iterator(None, Some(true))
    } yield SkewDecision(Some(Medians.toDouble), sides._1, sides._2, None, force)
    split.filter(d => d.left.threshold.isDefined || d.right.threshold.isDefined) ++
      Iterator.single(whole)
  }
}

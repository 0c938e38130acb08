package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData

/** What a policy says about one side of a join; None = Spark's value.
  *
  * @param splits
  *   parts of each partition, by partition id; None = it is not split
  */
final case class SideDecision(
    threshold: Option[Long],
    target: Option[Long],
    splits: Option[Seq[Option[Int]]]
) {
  private[skew_join] def splitsArray: GenericArrayData =
    splits.map(n => new GenericArrayData(n.map(_.getOrElse(null)).toArray[Any])).orNull
}

/** An answer at `skew_join`. */
final case class SkewDecision(
    factor: Option[Double],
    left: SideDecision,
    right: SideDecision,
    maxSplits: Option[Int],
    force: Option[Boolean]
) {

  /** What the left and the right side's partitions are to be split into; None where the facts lack the side. */
  def sides(facts: FactsRow): Seq[Option[SideSplits]] =
    Seq(
      SideSplits.of("left", left, factor, maxSplits, facts),
      SideSplits.of("right", right, factor, maxSplits, facts)
    )

  /** As the answer of a policy. */
  def row: InternalRow = new GenericInternalRow(
    Array[Any](
      factor.getOrElse(null),
      left.threshold.getOrElse(null),
      right.threshold.getOrElse(null),
      left.target.getOrElse(null),
      right.target.getOrElse(null),
      maxSplits.getOrElse(null),
      force.getOrElse(null),
      left.splitsArray,
      right.splitsArray
    )
  )

  def isForced(facts: FactsRow): Boolean =
    force.getOrElse(facts.isTrue("conf.force_optimize_skewed_join"))

  /** Whether all that it says is what Spark's own rule goes by: then Spark's plan is what it asks for. */
  def isSparks(facts: FactsRow): Boolean = {
    val spark = SkewDecision.sparks(facts)
    def keeps[T](answer: Option[T], value: Option[T]) = answer.forall(value.contains)
    def keepsSide(answer: SideDecision, value: SideDecision) =
      keeps(answer.threshold, value.threshold) && keeps(answer.target, value.target) &&
        answer.splits.isEmpty
    this == SkewDecision.none || facts.isTrue("conf.skew_join_enabled") &&
    keeps(factor, spark.factor) && keeps(force, spark.force) && maxSplits.isEmpty &&
    keepsSide(left, spark.left) && keepsSide(right, spark.right)
  }
}

object SkewDecision {

  /** Says nothing. */
  val none: SkewDecision = {
    val side = SideDecision(None, None, None)
    SkewDecision(None, side, side, None, None)
  }

  def of(answer: InternalRow): SkewDecision = {
    val row = new FactsRow(SkewJoinPoint.answer, answer)
    def side(name: String) = SideDecision(
      row.long(s"${name}_threshold_bytes"),
      row.long(s"${name}_target_bytes"),
      row.ints(s"${name}_splits")
    )
    SkewDecision(
      row.double("skew_factor"),
      side("left"),
      side("right"),
      row.long("max_splits").map(_.toInt),
      row.boolean("force")
    )
  }

  /** The values that Spark's own rule goes by, in a decision's fields. */
  def sparks(facts: FactsRow): SkewDecision = {
    val threshold = facts.long("conf.skewed_partition_threshold_in_bytes")
    val Seq(left, right) =
      none.sides(facts).map(s => SideDecision(threshold, s.map(_.target), None))
    SkewDecision(
      facts.double("conf.skewed_partition_factor"),
      left,
      right,
      None,
      facts.boolean("conf.force_optimize_skewed_join")
    )
  }
}

/** Into how many parts the partitions of one side are to go.
  *
  * @param bytes
  *   of each partition
  * @param largest
  *   the most of them
  * @param threshold
  *   a partition of more bytes is skewed
  * @param target
  *   bytes of a part
  * @param exact
  *   parts of each partition instead
  * @param maxSplits
  *   most parts of one partition
  */
final case class SideSplits(
    bytes: Array[Long],
    largest: Long,
    threshold: Long,
    target: Long,
    exact: Option[Seq[Int]],
    maxSplits: Option[Int]
) {

  /** Whether a partition is to be split. */
  def isAny: Boolean = exact.isDefined || largest > threshold

  /** Parts that each partition should have, were there map tasks enough; 1 = it is not to be split. */
  lazy val wanted: Array[Long] = {
    val parts = new Array[Long](bytes.length)
    var i = 0
    while (i < parts.length) {
      val asked =
        if (exact.isDefined) exact.get(i).toLong
        else if (bytes(i) > threshold) (bytes(i) - 1) / target + 1
        else 1L
      parts(i) = capped(asked)
      i += 1
    }
    parts
  }

  def capped(parts: Long): Long =
    if (maxSplits.isDefined) math.min(parts, maxSplits.get.toLong) else parts
}

object SideSplits {

  private[aqepilot] def of(
      side: String,
      says: SideDecision,
      factor: Option[Double],
      maxSplits: Option[Int],
      facts: FactsRow
  ): Option[SideSplits] = facts.longs(s"$side.bytes_by_partition_id").map { bytes =>
    val median = facts.long(s"$side.median_bytes").getOrElse(1L)
    val least = says.threshold.orElse(facts.long("conf.skewed_partition_threshold_in_bytes"))
    val medians = factor.orElse(facts.double("conf.skewed_partition_factor"))
    val threshold = math.max(
      least.getOrElse(Long.MaxValue),
      medians.fold(Long.MaxValue)(f => (median * f).toLong)
    )
    val advisory = facts.long("conf.advisory_partition_size_in_bytes").getOrElse(Long.MaxValue)
    val target = says.target.getOrElse(sparkTarget(bytes, threshold, advisory))
    val largest = facts.long(s"$side.max_bytes").getOrElse(Long.MaxValue)
    SideSplits(
      bytes,
      largest,
      threshold,
      math.max(1L, target),
      says.splits.map(_.map(_.getOrElse(1))),
      maxSplits
    )
  }

  /** The mean of the partitions that are not skewed, at least the advisory size, as in
    * `OptimizeSkewedJoin.targetSize`.
    */
  private def sparkTarget(bytes: Array[Long], threshold: Long, advisory: Long): Long = {
    var sum = 0L
    var count = 0
    var i = 0
    while (i < bytes.length) {
      if (bytes(i) <= threshold) {
        sum += bytes(i)
        count += 1
      }
      i += 1
    }
    if (count == 0) advisory else math.max(advisory, sum / count)
  }
}

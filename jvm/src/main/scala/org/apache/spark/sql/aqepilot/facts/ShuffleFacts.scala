package org.apache.spark.sql.aqepilot.facts

import java.util.{Collections, WeakHashMap}

import org.apache.spark.MapOutputStatistics
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.catalyst.util.ArrayData

/** What the sizes of a finished shuffle's partitions come to.
  *
  * @param bytes
  *   compressed bytes by partition id
  */
final case class ShuffleFacts(
    bytes: Array[Long],
    total: Long,
    max: Long,
    nonEmptyRatio: Option[Double]
) {

  /** The sizes as a fact, which all points share. */
  lazy val array: ArrayData = UnsafeArrayData.fromPrimitiveArray(bytes)

  /** As Spark's `Utils.median` gives it: the mean of the two middle ones, at least 1. */
  lazy val median: Long = ShuffleFacts.median(bytes)

  lazy val p90: Option[Long] = ShuffleFacts.percentile(bytes, 90)

  lazy val p99: Option[Long] = ShuffleFacts.percentile(bytes, 99)
}

object ShuffleFacts {

  private val known =
    Collections.synchronizedMap(new WeakHashMap[MapOutputStatistics, ShuffleFacts]())

  /** Computed once per finished shuffle. */
  def of(stats: MapOutputStatistics): ShuffleFacts = {
    val facts = known.get(stats)
    if (facts != null) facts
    else {
      val computed = of(stats.bytesByPartitionId)
      known.put(stats, computed)
      computed
    }
  }

  def of(bytes: Array[Long]): ShuffleFacts = {
    var total = 0L
    var max = 0L
    var nonEmpty = 0
    var i = 0
    while (i < bytes.length) {
      val b = bytes(i)
      total += b
      if (b > max) max = b
      if (b > 0) nonEmpty += 1
      i += 1
    }
    val ratio = if (bytes.isEmpty) None else Some(nonEmpty.toDouble / bytes.length)
    ShuffleFacts(bytes, total, max, ratio)
  }

  /** Median in linear time: a policy waits for it, and a full sort of 2,000 sizes takes longer. */
  private[aqepilot] def median(bytes: Array[Long]): Long =
    if (bytes.isEmpty) 1L
    else {
      val a = bytes.clone()
      val upper = select(a, a.length / 2)
      val middle =
        if (a.length % 2 == 1) upper
        else {
          var lower = Long.MinValue
          var i = 0
          while (i < a.length / 2) {
            if (a(i) > lower) lower = a(i)
            i += 1
          }
          (lower + upper) / 2
        }
      math.max(middle, 1L)
    }

  /** The smallest that at least so many in a hundred do not exceed (nearest rank); None of no partitions. */
  private[aqepilot] def percentile(bytes: Array[Long], percent: Int): Option[Long] =
    if (bytes.isEmpty) None
    else Some(select(bytes.clone(), ((bytes.length.toLong * percent + 99) / 100 - 1).toInt))

  /** Hoare's quickselect: the k-th smallest; all before position k are no larger afterwards. */
  private def select(a: Array[Long], k: Int): Long = {
    var low = 0
    var high = a.length - 1
    while (low < high) {
      val pivot = a((low + high) >>> 1)
      var i = low
      var j = high
      while (i <= j) {
        while (a(i) < pivot) i += 1
        while (a(j) > pivot) j -= 1
        if (i <= j) {
          val t = a(i)
          a(i) = a(j)
          a(j) = t
          i += 1
          j -= 1
        }
      }
      if (k <= j) high = j
      else if (k >= i) low = i
      else return a(k)
    }
    a(k)
  }
}

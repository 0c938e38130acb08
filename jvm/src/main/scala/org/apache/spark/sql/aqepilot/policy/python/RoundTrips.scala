package org.apache.spark.sql.aqepilot.policy.python

/** How long the newest answers took to come, from any thread. */
final class RoundTrips(most: Int = 1000) {

  private val nanos = new Array[Long](most)
  private var count = 0L

  def add(took: Long): Unit = synchronized {
    nanos((count % most).toInt) = took
    count += 1
  }

  /** Answers so far. */
  def answers: Long = synchronized(count)

  /** Of the newest answers, the time in milliseconds that so many in a hundred do not exceed (nearest rank); None
    * before the first.
    */
  def percentile(percent: Int): Option[Double] = {
    val sorted = synchronized(nanos.take(math.min(count, most.toLong).toInt)).sorted
    if (sorted.isEmpty) None
    else Some(sorted((sorted.length * percent + 99) / 100 - 1) / 1e6)
  }
}

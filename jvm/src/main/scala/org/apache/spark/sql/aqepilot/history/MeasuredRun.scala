package org.apache.spark.sql.aqepilot.history

/** What one run measured of a sub-plan, a shuffle or a query: a row of the pack, and of a closing event. None = not
  * measured.
  *
  * @param time
  *   when its query ended, milliseconds since 1970
  * @param isDecided
  *   whether a decision by history was in force there
  */
final private[history] case class MeasuredRun(
    time: Long,
    inputBytes: Option[Long] = None,
    rows: Option[Long] = None,
    bytes: Option[Long] = None,
    shuffleBytes: Option[Long] = None,
    partitions: Option[Long] = None,
    maxPartitionBytes: Option[Long] = None,
    medianPartitionBytes: Option[Long] = None,
    inputRows: Option[Long] = None,
    taskMillis: Option[Long] = None,
    readBytes: Option[Long] = None,
    readRows: Option[Long] = None,
    spilledBytes: Option[Long] = None,
    peakMemoryBytes: Option[Long] = None,
    failures: Option[Long] = None,
    isDecided: Boolean = false
)

package org.apache.spark.sql.aqepilot.history

/** What the past runs of one signature come to; none where no run measured it.
  *
  * @param isSame
  *   whether they are of the same sub-plan, and not of others of its shape only
  * @param figures
  *   of one signature or of many, one after the other
  * @param start
  *   where those of this signature begin
  */
final class PastRuns private[history] (
    val isSame: Boolean,
    figures: Array[Long],
    start: Int
) {
  import PastRuns._

  def runs: Int = figures(start + Runs).toInt

  /** When the newest ended, milliseconds since 1970. */
  def newest: Long = figures(start + Newest)

  def inputBytesP50: Option[Long] = long(InputBytes)
  def rowsP50: Option[Long] = long(RowsP50)
  def rowsMax: Option[Long] = long(RowsMax)
  def bytesP50: Option[Long] = long(BytesP50)
  def bytesMax: Option[Long] = long(BytesMax)
  def shuffleBytesP50: Option[Long] = long(ShuffleBytes)
  def partitionsP50: Option[Int] = long(Partitions).map(_.toInt)

  /** Of the largest partition to the median one. */
  def maxPartitionRatio: Option[Double] = double(MaxPartition)

  /** Task time for each MB that was read. */
  def millisPerMb: Option[Double] = double(MillisPerMb)

  def microsPerRow: Option[Double] = double(MicrosPerRow)

  /** Share of the runs that spilled. */
  def spilledRatio: Option[Double] = double(Spilled)

  def peakMemoryMax: Option[Long] = long(PeakMemory)

  /** Rows that a partial aggregate put out for each that went in. */
  def reduction: Option[Double] = double(Reduction)

  def failedRuns: Int = figures(start + Failed).toInt

  def decidedRuns: Int = figures(start + Decided).toInt

  /** Task time of runs without a decision by history. */
  def taskMillisP50: Option[Long] = long(TaskMillis)

  /** Task time of the others. */
  def decidedTaskMillisP50: Option[Long] = long(DecidedTaskMillis)

  private def long(figure: Int): Option[Long] = {
    val value = figures(start + figure)
    if (value == Missing) None else Some(value)
  }

  private def double(figure: Int): Option[Double] =
    long(figure).map(java.lang.Double.longBitsToDouble)
}

private[history] object PastRuns {

  // Where the figures of one signature stand.
  private val Runs = 0
  private val Newest = 1
  private val InputBytes = 2
  private val RowsP50 = 3
  private val RowsMax = 4
  private val BytesP50 = 5
  private val BytesMax = 6
  private val ShuffleBytes = 7
  private val Partitions = 8
  private val MaxPartition = 9
  private val MillisPerMb = 10
  private val MicrosPerRow = 11
  private val Spilled = 12
  private val PeakMemory = 13
  private val Reduction = 14
  private val Failed = 15
  private val Decided = 16
  private val TaskMillis = 17
  private val DecidedTaskMillis = 18

  /** Figures of one signature. */
  val Width = 19

  // No size, and no share's bits.
  private val Missing = Long.MinValue
  private val Mb = 1024.0 * 1024.0

  /** The figures of some runs, at least one. */
  def figures(measured: Seq[MeasuredRun]): Array[Long] = {
    def p50(value: MeasuredRun => Option[Long]) = median(measured.flatMap(value(_)))
    def most(value: MeasuredRun => Option[Long]) =
      measured.flatMap(value(_)).reduceOption(_ max _).getOrElse(Missing)
    def ratio(value: MeasuredRun => Option[Double]) = bits(medianOf(measured.flatMap(value(_))))
    def over(top: Option[Long], bottom: Option[Long], unit: Double) =
      for (a <- top; b <- bottom if b > 0) yield a / (b / unit)
    val spills = measured.flatMap(_.spilledBytes)
    val all = new Array[Long](Width)
    all(Runs) = measured.size.toLong
    all(Newest) = measured.map(_.time).max
    all(InputBytes) = p50(_.inputBytes)
    all(RowsP50) = p50(_.rows)
    all(RowsMax) = most(_.rows)
    all(BytesP50) = p50(_.bytes)
    all(BytesMax) = most(_.bytes)
    all(ShuffleBytes) = p50(_.shuffleBytes)
    all(Partitions) = p50(_.partitions)
    all(MaxPartition) = ratio(r =>
      for (max <- r.maxPartitionBytes; median <- r.medianPartitionBytes)
        yield max / math.max(median, 1L).toDouble
    )
    all(MillisPerMb) = ratio(r => over(r.taskMillis, r.readBytes, Mb))
    all(MicrosPerRow) = ratio(r => over(r.taskMillis, r.readRows, 1000.0))
    all(Spilled) =
      bits(if (spills.isEmpty) None else Some(spills.count(_ > 0) / spills.size.toDouble))
    all(PeakMemory) = most(_.peakMemoryBytes)
    all(Reduction) = ratio(r => over(r.rows, r.inputRows, 1.0))
    all(Failed) = measured.count(_.failures.exists(_ > 0)).toLong
    all(Decided) = measured.count(_.isDecided).toLong
    all(TaskMillis) = p50(r => if (r.isDecided) None else r.taskMillis)
    all(DecidedTaskMillis) = p50(r => if (r.isDecided) r.taskMillis else None)
    all
  }

  private def bits(value: Option[Double]): Long =
    value.fold(Missing)(java.lang.Double.doubleToLongBits)

  /** The mean of the two middle ones of an even number. */
  private def median(values: Seq[Long]): Long =
    if (values.isEmpty) Missing
    else {
      val sorted = values.sorted
      val (low, high) = (sorted((sorted.size - 1) / 2), sorted(sorted.size / 2))
      low + (high - low) / 2
    }

  private def medianOf(values: Seq[Double]): Option[Double] =
    if (values.isEmpty) None
    else {
      val sorted = values.sorted
      Some((sorted((sorted.size - 1) / 2) + sorted(sorted.size / 2)) / 2)
    }
}

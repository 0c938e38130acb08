package org.apache.spark.sql.aqepilot.spark

/** What Spark's hash relations take of memory, at most, while they are built.
  *
  * A row is copied into pages. Those of a `LongHashedRelation` double, and both copies are there for a while: three
  * times the rows. A row has an entry in an array, too, which is at most half full and doubles likewise, and a
  * pointer; a row of an `UnsafeHashedRelation` has its key once more.
  *
  * Source: `LongToUnsafeRowMap`, `BytesToBytesMap`; the figures are the largest of eleven shapes of rows in
  * `HashTableSuite`.
  */
object HashTable {

  /** Bytes for each byte of a row, as `UnsafeRow` has it: the default of `spark.aqepilot.guard.growth`. */
  val Growth = 3.0

  /** Bytes for each row beside those. */
  val EntryBytes = 112L

  /** The size of the smallest row that has a key. */
  private val SmallestRow = 16L

  /** Worked example: a million rows of one bigint have 16 MB, and take 16 * 3 + 112 = 160 MB.
    *
    * @param bytes
    *   of all rows, uncompressed
    * @param growth
    *   `spark.aqepilot.guard.growth`
    */
  def bytes(bytes: Double, rows: Double, growth: Double): Long =
    (bytes * growth + rows * EntryBytes).toLong

  /** Of a part of the rows that has so many of their bytes, and its share of their number. */
  def bytesOfPart(part: Double, whole: Double, rows: Double, growth: Double): Long =
    if (whole > 0) bytes(part, rows * part / whole, growth) else bytes(part, 0, growth)

  /** How many rows a side has: as known, or as many as fit its bytes.
    *
    * @param rowBytes
    *   of one row, where it is known
    */
  def rows(count: Option[Long], bytes: Long, rowBytes: Option[Long]): Double =
    count.fold(bytes.toDouble / math.max(SmallestRow, rowBytes.getOrElse(SmallestRow)))(_.toDouble)
}

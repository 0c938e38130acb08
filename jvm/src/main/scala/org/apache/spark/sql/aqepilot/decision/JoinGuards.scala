package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.spark.HashTable

/** What a side of a join may be to be broadcast or built from, from the facts alone, at each point that decides so. */
object JoinGuards {

  /** Rows that a broadcast relation can hold: `BytesToBytesMap.MAX_CAPACITY / 1.5`
    * (BroadcastExchangeExec.maxBroadcastRows, for keys other than a single bigint).
    */
  val MaxBroadcastRows: Long = ((1L << 29) / 1.5).toLong

  private val MinPartitionBytes = 1L << 20

  /** Why the hash table of a side that is broadcast would not fit, if it would not. */
  def broadcastTable(
      side: String,
      bytes: Long,
      facts: FactsRow,
      guards: Guards
  ): Option[String] = {
    val table = HashTable.bytes(bytes.toDouble, rows(facts, side, bytes), guards.growth)
    if (table <= guards.maxBroadcastTableBytes) None
    else
      Some(
        s"its hash table would take about $table bytes, more than the ${guards.maxBroadcastTableBytes} that the " +
          "driver's and an executor's memory hold"
      )
  }

  /** How many rows a side has: as known, or as many as fit its bytes. */
  def rows(facts: FactsRow, side: String, bytes: Long): Double =
    HashTable.rows(facts.long(s"$side.row_count"), bytes, facts.long(s"$side.row_bytes"))

  /** Memory of the largest hash table that one task would build from a side whose shuffle has run.
    *
    * The largest partition, or what coalescing may make of several; as rows, uncompressed (by the ratio of
    * rows' bytes to shuffle bytes, at least 1), of which it has its share; in a [[HashTable]].
    *
    * Worked example: 64 MiB in the largest partition, 300 MiB in all that hold 900 MiB of 4.5 million rows, growth
    * 3.0: 192 MiB of 960,000 rows give 192 * 3 + 103 = 679 MiB.
    */
  def hashBuildBytes(facts: FactsRow, side: String, growth: Double): Option[Long] =
    for {
      largest <- facts.long(s"$side.max_bytes")
      total <- facts.long(s"$side.shuffle_bytes")
      rows <- facts.long(s"$side.size_in_bytes")
    } yield {
      val compressed = math.max(largest, coalescedBytes(facts, total))
      val ratio = if (total > 0) math.max(1.0, rows.toDouble / total) else 1.0
      val count = JoinGuards.rows(facts, side, rows)
      HashTable.bytesOfPart(compressed * ratio, rows.toDouble, count, growth)
    }

  /** Bytes of a shuffle that coalescing may give one task. */
  def coalescedBytes(facts: FactsRow, total: Long): Long = {
    val target =
      if (facts.isTrue("conf.coalesce_partitions_parallelism_first"))
        math.max(
          MinPartitionBytes,
          total / math.max(1L, facts.long("cluster.default_parallelism").getOrElse(1L))
        )
      else facts.long("conf.advisory_partition_size_in_bytes").getOrElse(total)
    math.min(total, target)
  }
}

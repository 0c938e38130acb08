package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.types._

object OldFacts {
  private[aqepilot] def fact(name: String, dataType: DataType, meaning: String): StructField =
    StructField(name, dataType, nullable = true).withComment(meaning)

  private[aqepilot] def group(name: String, meaning: String, fields: StructField*): StructField =
    fact(name, StructType(fields), meaning)

  private[aqepilot] val tables: StructField =
    fact("tables", ArrayType(StringType), "names of the tables or files beneath, in plan order")

  private[aqepilot] val rowBytes: StructField = fact(
    "row_bytes",
    LongType,
    "Spark's estimate of one row's size, by its columns' types, bytes (EstimationUtils.getSizePerRow)"
  )

  private[aqepilot] val joinType: StructField = fact(
    "type",
    StringType,
    "INNER, CROSS, LEFT OUTER, RIGHT OUTER, FULL OUTER, LEFT SEMI, LEFT ANTI or EXISTENCE"
  )

  private[aqepilot] val conditionCanThrow: StructField = fact(
    "condition_can_throw",
    BooleanType,
    "whether that condition could throw for some rows, by a division under ANSI, say"
  )

  /** @param what
    *   a plan of what could meet them
    */
  private[aqepilot] def sparkFaults(what: String): StructField = fact(
    "spark_faults",
    ArrayType(StringType),
    s"numbers of those faults of the running Spark release that a changed plan of $what could meet: SPARK_FAULT " +
      "refuses the answers that lead there"
  )

  private[aqepilot] val prunes: StructField = fact(
    "prunes",
    BooleanType,
    "whether Spark's own plan broadcasts this side, and reads only those partitions of the other side's tables " +
      "for which the broadcast has rows (dynamic partition pruning)"
  )

  private[aqepilot] val isInPruningSide: StructField = fact(
    "is_in_pruning_side",
    BooleanType,
    "whether the join is part of a side that prunes so: Spark plans such a side twice, and prunes only where " +
      "both plans are alike"
  )

  /** The sizes of finished shuffles' partitions.
    *
    * @param ofEach
    *   what the size of one partition is
    */
  private[aqepilot] def sizes(ofEach: String): Seq[StructField] = Seq(
    fact("bytes_by_partition_id", ArrayType(LongType), ofEach),
    fact(
      "bytes_are_exact",
      BooleanType,
      "false above spark.shuffle.minNumPartitionsToHighlyCompress partitions, where Spark reports " +
        "averages for small blocks"
    ),
    fact("shuffle_bytes", LongType, "sum of bytes_by_partition_id"),
    fact("max_bytes", LongType, "largest of bytes_by_partition_id"),
    fact("median_bytes", LongType, "median of bytes_by_partition_id, at least 1 (Utils.median)")
  )

  private[aqepilot] val sizesOfOne: Seq[StructField] =
    sizes("shuffle bytes (compressed) of each partition, as MapOutputStatistics has them")
}

package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  RangePartitioning
}

/** The partitionings whose number of partitions is free. 4.3 adds
  * one for the null-filled side of an outer join.
  */
object ShufflePartitionings {

  /** The same with another number; None where the number is not free (a single partition, round robin). */
  def withNumber(partitioning: Partitioning, number: Int): Option[Partitioning] =
    partitioning match {
      case p: HashPartitioning  => Some(p.copy(numPartitions = number))
      case p: RangePartitioning => Some(p.copy(numPartitions = number))
      case _                    => None
    }
}

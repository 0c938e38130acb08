package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  NullAwareHashPartitioning,
  Partitioning,
  RangePartitioning
}

/** The partitionings whose number of partitions is free. From 4.3 on
  * the null-filled side of an outer join has one of its own.
  */
object ShufflePartitionings {

  /** The same with another number; None where the number is not free (a single partition, round robin). */
  def withNumber(partitioning: Partitioning, number: Int): Option[Partitioning] =
    partitioning match {
      case p: HashPartitioning          => Some(p.copy(numPartitions = number))
      case p: RangePartitioning         => Some(p.copy(numPartitions = number))
      case p: NullAwareHashPartitioning => Some(p.copy(numPartitions = number))
      case _                            => None
    }
}

package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason

/** Joins whose strategy keeps Spark from reading partitions, from the facts alone.
  *
  * Spark prunes a scan by what the other side of a join holds only where it broadcasts that side, unless
  * `spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly` is false and it finds a query of its own worth it.
  */
object KeptPruning {

  /** Why a join is to run as Spark would have it, if it is. */
  def asInSide(facts: FactsRow): Option[(Reason, String)] =
    if (!facts.isTrue("join.is_in_pruning_side")) None
    else
      Some(
        (
          Reason.ReadsMore,
          "the join is in a side of another join whose broadcast prunes partitions: Spark plans that side twice, " +
            "and prunes only where both plans are alike"
        )
      )

  /** Why a side is to be broadcast, if it is.
    *
    * @param side
    *   the group of its facts
    */
  def asBroadcast(side: String, word: String, facts: FactsRow): Option[(Reason, String)] =
    if (!facts.isTrue(s"$side.prunes")) None
    else
      Some(
        (
          Reason.ReadsMore,
          s"$word: the broadcast of the $side side prunes partitions of the other side's tables, all of which would " +
            "be read"
        )
      )
}

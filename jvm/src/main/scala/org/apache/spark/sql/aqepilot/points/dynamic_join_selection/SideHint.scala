package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.plans.logical.{
  BROADCAST,
  JoinStrategyHint,
  NO_BROADCAST_HASH,
  SHUFFLE_HASH,
  SHUFFLE_MERGE
}

/** A hint for one side of a join: what an answer at `dynamic_join_selection` says.
  *
  * @param word
  *   Spark's; of an answer it may be any
  */
final case class SideHint(word: String) {

  /** Spark's hint of the same word; none where Spark has none. */
  def strategy: Option[JoinStrategyHint] = word match {
    case Broadcast       => Some(BROADCAST)
    case ShuffleHash     => Some(SHUFFLE_HASH)
    case ShuffleMerge    => Some(SHUFFLE_MERGE)
    case NoBroadcastHash => Some(NO_BROADCAST_HASH)
    case _               => None
  }

  /** Whether tasks may build hash tables from the side by it. */
  def buildsTables: Boolean = word == ShuffleHash || word == PreferShuffleHash

  /** The order of Spark's join hints (JoinSelection): a higher one wins over the other side's; those of rank 1
    * go together.
    */
  def rank: Int = word match {
    case Broadcast    => 4
    case ShuffleMerge => 3
    case ShuffleHash  => 2
    case _            => 1
  }

  /** Why it loses to the other side's hint, if it does.
    *
    * @param otherIsSmaller
    *   whether Spark would build from the other side of the two
    */
  def losesTo(other: SideHint, otherIsSmaller: Boolean): Option[Reason] =
    if (word == NoBroadcastHash) None
    else if (other.rank > rank) Some(Reason.OtherSideWon)
    else if (other == this && (word == Broadcast || buildsTables) && otherIsSmaller)
      Some(Reason.OtherSideSmaller)
    else None
}

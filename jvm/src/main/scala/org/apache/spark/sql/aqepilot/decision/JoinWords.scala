package org.apache.spark.sql.aqepilot.decision

/** Spark's own words for how a join runs, and from which side it builds. */
object JoinWords {
  val Broadcast = "BROADCAST"
  val ShuffleHash = "SHUFFLE_HASH"
  val PreferShuffleHash = "PREFER_SHUFFLE_HASH"
  val ShuffleMerge = "SHUFFLE_MERGE"
  val ShuffleReplicate = "SHUFFLE_REPLICATE_NL"
  val NoBroadcastHash = "NO_BROADCAST_HASH"
  val BuildLeft = "LEFT"
  val BuildRight = "RIGHT"
}

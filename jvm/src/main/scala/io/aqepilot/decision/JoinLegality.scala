package io.aqepilot.decision

import org.apache.spark.unsafe.types.UTF8String

import DynamicJoinSelectionPoint._

/** Which answers at `dynamic_join_selection` are legal, from the facts alone.
  *
  * Spark ignores a hint that a join does not admit, with a warning at best; here each has its reason. The guard
  * rails keep a policy from failing a query; an answer that is also Spark's own passes them, for Spark would do
  * it anyway.
  */
object JoinLegality {

  /** Rows that a broadcast relation can hold: `BytesToBytesMap.MAX_CAPACITY / 1.5`
    * (BroadcastExchangeExec.maxBroadcastRows, for keys other than a single bigint).
    */
  val MaxBroadcastRows: Long = ((1L << 29) / 1.5).toLong

  private val MinPartitionBytes = 1L << 20

  def verdict(answer: String, facts: FactsRow, guards: Guards): Verdict = {
    def refused(reason: Reason, detail: String) = Verdict(None, reason, Some(detail))
    val accepted = Verdict(Some(UTF8String.fromString(answer)), Reason.Applied)
    val joinType = facts.string("join.type").getOrElse("?")
    val side = if (facts.isTrue("side.is_left")) "left" else "right"
    def notAdmitted(what: String) =
      refused(Reason.NotAdmitted, s"$answer: a $joinType join cannot $what its $side side")

    if (!words.exists(_.word == answer)) {
      refused(
        Reason.UnknownWord,
        s"'${answer.take(60)}' is not one of ${words.map(_.word).mkString(", ")}"
      )
    } else if (userHint(facts).isDefined) {
      refused(Reason.UserHint, s"the query says ${userHint(facts).get}")
    } else if (facts.isTrue("other.is_broadcast")) {
      Verdict(None, Reason.AlreadyBroadcast)
    } else {
      val sparksOwn = facts.string("spark.hint").contains(answer)
      answer match {
        case Broadcast if !facts.isTrue("side.can_broadcast")       => notAdmitted("broadcast")
        case NoBroadcastHash if !facts.isTrue("side.can_broadcast") =>
          notAdmitted("broadcast anyway")
        case ShuffleHash | PreferShuffleHash if !facts.isTrue("side.can_shuffle_hash") =>
          notAdmitted("build a hash table from")
        case ShuffleMerge if !facts.isTrue("join.keys_are_orderable") =>
          refused(Reason.NotAdmitted, "SHUFFLE_MERGE: the join keys' types cannot be sorted")
        case _ if sparksOwn                  => accepted
        case Broadcast                       => broadcastGuard(facts, guards).getOrElse(accepted)
        case ShuffleHash | PreferShuffleHash => hashGuard(facts, guards).getOrElse(accepted)
        case _                               => accepted
      }
    }
  }

  private def userHint(facts: FactsRow): Option[String] = {
    val left = facts.string("join.left_hint").map(h => s"$h on the left side")
    val right = facts.string("join.right_hint").map(h => s"$h on the right side")
    left.orElse(right)
  }

  private def broadcastGuard(facts: FactsRow, guards: Guards): Option[Verdict] = {
    val bytes = facts.long("side.size_in_bytes")
    val rows = facts.long("side.row_count")
    if (bytes.forall(_ > guards.maxBroadcastBytes))
      Some(
        Verdict(
          None,
          Reason.GuardBroadcastBytes,
          Some(
            bytes.fold("side.size_in_bytes is null: a side of unknown size is not broadcast")(n =>
              s"$n bytes are more than the ${guards.maxBroadcastBytes} of " +
                "spark.aqepilot.guard.max_broadcast_bytes"
            )
          )
        )
      )
    else if (rows.exists(_ > MaxBroadcastRows))
      Some(
        Verdict(
          None,
          Reason.GuardBroadcastRows,
          Some(s"${rows.get} rows are more than the $MaxBroadcastRows that Spark can broadcast")
        )
      )
    else
      broadcastTable("side", bytes.get, facts, guards).map { why =>
        Verdict(None, Reason.GuardBroadcastBytes, Some(why))
      }
  }

  /** Why the hash table of a side that is broadcast would not fit, if it would not. */
  private[decision] def broadcastTable(
      side: String,
      bytes: Long,
      facts: FactsRow,
      guards: Guards
  ): Option[String] = {
    val table = HashTable.bytes(bytes.toDouble, HashTable.rowsOf(facts, side, bytes), guards.growth)
    if (table <= guards.maxBroadcastTableBytes) None
    else
      Some(
        s"its hash table would take about $table bytes, more than the ${guards.maxBroadcastTableBytes} that the " +
          "driver's and an executor's memory hold"
      )
  }

  private def hashGuard(facts: FactsRow, guards: Guards): Option[Verdict] = {
    val why = hashBuildBytes(facts, "side", guards.growth) match {
      case Some(needed) => HashTable.tooLarge(needed, guards)
      case None         =>
        Some(
          "side.max_bytes, side.shuffle_bytes or side.size_in_bytes is null: no hash table is built " +
            "from a side of unknown size"
        )
    }
    why.map(text => Verdict(None, Reason.GuardHashBuildBytes, Some(text)))
  }

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
      val count = HashTable.rowsOf(facts, side, rows)
      HashTable.bytesOfPart(compressed * ratio, rows.toDouble, count, growth)
    }

  /** Bytes of a shuffle that coalescing may give one task. */
  private[decision] def coalescedBytes(facts: FactsRow, total: Long): Long = {
    val target =
      if (facts.isTrue("conf.coalesce_partitions_parallelism_first"))
        math.max(
          MinPartitionBytes,
          total / math.max(1L, facts.long("cluster.default_parallelism").getOrElse(1L))
        )
      else facts.long("conf.advisory_partition_size_in_bytes").getOrElse(total)
    math.min(total, target)
  }

  /** The order of Spark's join hints (JoinSelection): a higher one wins over the other side's; those of rank 1
    * go together.
    */
  def rank(word: String): Int = word match {
    case Broadcast    => 4
    case ShuffleMerge => 3
    case ShuffleHash  => 2
    case _            => 1
  }

  /** Whether a side's word loses to the other side's, and why.
    *
    * @param otherIsSmaller
    *   whether Spark would build from the other side of the two
    */
  def loses(word: String, other: Option[String], otherIsSmaller: Boolean): Option[Reason] =
    other.flatMap { o =>
      val bothBuild = Seq(Broadcast, ShuffleHash, PreferShuffleHash).contains(word)
      if (word == NoBroadcastHash) None
      else if (rank(o) > rank(word)) Some(Reason.OtherSideWon)
      else if (o == word && bothBuild && otherIsSmaller) Some(Reason.OtherSideSmaller)
      else None
    }
}

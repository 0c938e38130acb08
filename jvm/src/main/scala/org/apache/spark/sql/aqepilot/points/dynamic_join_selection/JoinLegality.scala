package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import DynamicJoinSelectionPoint._
import org.apache.spark.sql.aqepilot.decision.JoinGuards._
import org.apache.spark.sql.aqepilot.decision.{
  FirstMatch,
  Guards,
  KeptPruning,
  SparkFault,
  SparkFaults,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.unsafe.types.UTF8String

/** Which answers at `dynamic_join_selection` are legal, from the facts alone.
  *
  * Spark ignores a hint that a join does not admit, with a warning at best; here each has its reason. The guard
  * rails keep a policy from failing a query; an answer that is also Spark's own passes them, for Spark would do
  * it anyway.
  */
object JoinLegality {

  def verdict(answer: String, facts: FactsRow, guards: Guards): Verdict[Any] = {
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
      val keeps = FirstMatch.keepsSparks(facts)
      lazy val fault = SparkFaults
        .refusal(name, "join.spark_faults", mayRunAs(answer, side) ++ moved(answer, facts), facts)
      answer match {
        case Broadcast if !facts.isTrue("side.can_broadcast")       => notAdmitted("broadcast")
        case NoBroadcastHash if !facts.isTrue("side.can_broadcast") =>
          notAdmitted("broadcast anyway")
        case ShuffleHash | PreferShuffleHash if !facts.isTrue("side.can_shuffle_hash") =>
          notAdmitted("build a hash table from")
        case ShuffleMerge if !facts.isTrue("join.keys_are_orderable") =>
          refused(Reason.NotAdmitted, "SHUFFLE_MERGE: the join keys' types cannot be sorted")
        case _ if sparksOwn       => accepted
        case _ if fault.isDefined => refused(fault.get._1, fault.get._2)
        case _ if keeps.isDefined => refused(Reason.ConditionCanThrow, s"$answer: ${keeps.get}")
        case _ if pruning(answer, facts).isDefined =>
          val (reason, why) = pruning(answer, facts).get
          refused(reason, why)
        case Broadcast                       => broadcastGuard(facts, guards).getOrElse(accepted)
        case ShuffleHash | PreferShuffleHash => hashGuard(facts, guards).getOrElse(accepted)
        case _                               => accepted
      }
    }
  }

  /** What Spark may make of an answer, in the words of `join_selection`: without a broadcast it chooses itself. */
  private def mayRunAs(answer: String, side: String): Seq[String] = {
    val build = Seq(BuildLeft, BuildRight).find(_.equalsIgnoreCase(side)).toSeq
    answer match {
      case ShuffleHash | PreferShuffleHash => build.map(b => s"$ShuffleHash $b")
      case ShuffleMerge                    => Seq(ShuffleMerge)
      case NoBroadcastHash                 =>
        ShuffleMerge +: Seq(BuildLeft, BuildRight).map(b => s"$ShuffleHash $b")
      case other => build.map(b => s"$other $b")
    }
  }

  /** Whether the join may be distributed otherwise than by Spark: where none of its sides is small enough to be
    * broadcast, it is shuffled whatever hash table or sort is said.
    */
  private def moved(answer: String, facts: FactsRow): Seq[String] = {
    val threshold = facts.long("conf.adaptive_auto_broadcast_join_threshold")
      .orElse(facts.long("conf.auto_broadcast_join_threshold")).getOrElse(Long.MaxValue)
    val mayBroadcast =
      Seq("side", "other").exists(s => facts.long(s"$s.size_in_bytes").forall(_ <= threshold))
    val isShuffled = Seq(ShuffleHash, PreferShuffleHash, ShuffleMerge).contains(answer)
    if (isShuffled && !mayBroadcast) Nil else Seq(SparkFault.OtherDistribution)
  }

  private def userHint(facts: FactsRow): Option[String] = {
    val left = facts.string("join.left_hint").map(h => s"$h on the left side")
    val right = facts.string("join.right_hint").map(h => s"$h on the right side")
    left.orElse(right)
  }

  /** Why Spark would read partitions that it prunes now, if it would.
    *
    * PREFER_SHUFFLE_HASH and, on the side that does not prune, NO_BROADCAST_HASH leave Spark's broadcast by size.
    */
  private def pruning(answer: String, facts: FactsRow): Option[(Reason, String)] = {
    def side = KeptPruning.asBroadcast("side", answer, facts)
    def other = KeptPruning.asBroadcast("other", answer, facts)
    KeptPruning.asInSide(facts).orElse(answer match {
      case PreferShuffleHash => None
      case Broadcast         => other
      case NoBroadcastHash   => side
      case _                 => side.orElse(other)
    })
  }

  private def broadcastGuard(facts: FactsRow, guards: Guards): Option[Verdict[Any]] = {
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

  private def hashGuard(facts: FactsRow, guards: Guards): Option[Verdict[Any]] = {
    val why = hashBuildBytes(facts, "side", guards.growth) match {
      case Some(needed) => guards.hashBuildTooLarge(needed)
      case None         =>
        Some(
          "side.max_bytes, side.shuffle_bytes or side.size_in_bytes is null: no hash table is built " +
            "from a side of unknown size"
        )
    }
    why.map(text => Verdict(None, Reason.GuardHashBuildBytes, Some(text)))
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

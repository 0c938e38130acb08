package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinGuards._
import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.decision.{
  FirstMatch,
  Guards,
  KeptPruning,
  SparkFault,
  SparkFaults,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.DynamicJoinSelectionPoint.{
  name,
  words
}
import org.apache.spark.sql.aqepilot.reasons.Reason

/** Which answers at `dynamic_join_selection` are legal, from the facts alone.
  *
  * Spark ignores a hint that a join does not admit, with a warning at best; here each has its reason. The guard
  * rails keep a policy from failing a query; an answer that is also Spark's own passes them, for Spark would do
  * it anyway.
  */
object JoinLegality {

  private type Refusal = Option[Verdict[Nothing]]

  def verdict(answer: SideHint, facts: FactsRow, guards: Guards): Verdict[SideHint] =
    unknown(answer)
      .orElse(userHint(facts))
      .orElse(alreadyBroadcast(facts))
      .orElse(notAdmitted(answer, facts))
      .orElse(if (isSparks(answer, facts)) None else unlikeSparks(answer, facts, guards))
      .getOrElse(Verdict(Some(answer), Reason.Applied))

  private def refused(reason: Reason, detail: String) = Verdict(None, reason, Some(detail))

  private def unknown(answer: SideHint): Refusal =
    if (words.exists(_.word == answer.word)) None
    else
      Some(
        refused(
          Reason.UnknownWord,
          s"'${answer.word.take(60)}' is not one of ${words.map(_.word).mkString(", ")}"
        )
      )

  private def userHint(facts: FactsRow): Refusal = {
    def on(side: String) =
      facts.string(s"join.${side}_hint").map(h => s"the query says $h on the $side side")
    on("left").orElse(on("right")).map(refused(Reason.UserHint, _))
  }

  private def alreadyBroadcast(facts: FactsRow): Refusal =
    if (facts.isTrue("other.is_broadcast")) Some(Verdict(None, Reason.AlreadyBroadcast)) else None

  private def notAdmitted(answer: SideHint, facts: FactsRow): Refusal = {
    val joinType = facts.string("join.type").getOrElse("?")
    val side = if (facts.isTrue("side.is_left")) "left" else "right"
    def unless(fact: String, what: String) =
      if (facts.isTrue(fact)) None
      else Some(s"${answer.word}: a $joinType join cannot $what its $side side")
    val why = answer.word match {
      case Broadcast                       => unless("side.can_broadcast", "broadcast")
      case NoBroadcastHash                 => unless("side.can_broadcast", "broadcast anyway")
      case ShuffleHash | PreferShuffleHash =>
        unless("side.can_shuffle_hash", "build a hash table from")
      case ShuffleMerge if !facts.isTrue("join.keys_are_orderable") =>
        Some("SHUFFLE_MERGE: the join keys' types cannot be sorted")
      case _ => None
    }
    why.map(refused(Reason.NotAdmitted, _))
  }

  private def isSparks(answer: SideHint, facts: FactsRow) =
    facts.string("spark.hint").contains(answer.word)

  private def unlikeSparks(answer: SideHint, facts: FactsRow, guards: Guards): Refusal =
    SparkFaults
      .refusal(name, "join.spark_faults", mayRunAs(answer, facts) ++ moved(answer, facts), facts)
      .orElse(
        FirstMatch
          .keepsSparks(facts)
          .map(why => (Reason.ConditionCanThrow, s"${answer.word}: $why"))
      )
      .orElse(pruning(answer, facts))
      .orElse(guard(answer, facts, guards))
      .map { case (reason, why) => refused(reason, why) }

  /** What Spark may make of an answer, in the words of `join_selection`: without a broadcast it chooses itself. */
  private def mayRunAs(answer: SideHint, facts: FactsRow): Seq[String] = {
    val build = if (facts.isTrue("side.is_left")) BuildLeft else BuildRight
    answer.word match {
      case ShuffleHash | PreferShuffleHash => Seq(s"$ShuffleHash $build")
      case ShuffleMerge                    => Seq(ShuffleMerge)
      case NoBroadcastHash                 =>
        ShuffleMerge +: Seq(BuildLeft, BuildRight).map(b => s"$ShuffleHash $b")
      case other => Seq(s"$other $build")
    }
  }

  /** Whether the join may be distributed otherwise than by Spark: where none of its sides is small enough to be
    * broadcast, it is shuffled for every answer.
    */
  private def moved(answer: SideHint, facts: FactsRow): Seq[String] = {
    val threshold = facts.long("conf.adaptive_auto_broadcast_join_threshold")
      .orElse(facts.long("conf.auto_broadcast_join_threshold")).getOrElse(Long.MaxValue)
    val mayBroadcast =
      Seq("side", "other").exists(s => facts.long(s"$s.size_in_bytes").forall(_ <= threshold))
    val isShuffled = answer.buildsTables || answer.word == ShuffleMerge
    if (isShuffled && !mayBroadcast) Nil else Seq(SparkFault.OtherDistribution)
  }

  /** Why Spark would read partitions that it prunes now, if it would.
    *
    * PREFER_SHUFFLE_HASH and, on the side that does not prune, NO_BROADCAST_HASH leave Spark's broadcast by size.
    */
  private def pruning(answer: SideHint, facts: FactsRow): Option[(Reason, String)] = {
    def side = KeptPruning.asBroadcast("side", answer.word, facts)
    def other = KeptPruning.asBroadcast("other", answer.word, facts)
    KeptPruning.asInSide(facts).orElse(answer.word match {
      case PreferShuffleHash => None
      case Broadcast         => other
      case NoBroadcastHash   => side
      case _                 => side.orElse(other)
    })
  }

  private def guard(
      answer: SideHint,
      facts: FactsRow,
      guards: Guards
  ): Option[(Reason, String)] =
    if (answer.word == Broadcast) broadcastGuard(facts, guards)
    else if (answer.buildsTables) hashGuard(facts, guards).map((Reason.GuardHashBuildBytes, _))
    else None

  private def broadcastGuard(facts: FactsRow, guards: Guards): Option[(Reason, String)] = {
    val rows = facts.long("side.row_count").filter(_ > MaxBroadcastRows).map(n =>
      (
        Reason.GuardBroadcastRows,
        s"$n rows are more than the $MaxBroadcastRows that Spark can broadcast"
      )
    )
    facts.long("side.size_in_bytes") match {
      case None =>
        Some(
          (
            Reason.GuardBroadcastBytes,
            "side.size_in_bytes is null: a side of unknown size is not broadcast"
          )
        )
      case Some(bytes) if bytes > guards.maxBroadcastBytes =>
        Some(
          (
            Reason.GuardBroadcastBytes,
            s"$bytes bytes are more than the ${guards.maxBroadcastBytes} of " +
              "spark.aqepilot.guard.max_broadcast_bytes"
          )
        )
      case Some(bytes) =>
        rows.orElse(
          broadcastTable("side", bytes, facts, guards).map((Reason.GuardBroadcastBytes, _))
        )
    }
  }

  private def hashGuard(facts: FactsRow, guards: Guards): Option[String] =
    hashBuildBytes(facts, "side", guards.growth) match {
      case Some(needed) => guards.hashBuildTooLarge(needed)
      case None         =>
        Some(
          "side.max_bytes, side.shuffle_bytes or side.size_in_bytes is null: no hash table is built " +
            "from a side of unknown size"
        )
    }
}

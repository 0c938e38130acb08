package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.decision.{
  FirstMatch,
  Guards,
  JoinGuards,
  KeptPruning,
  Selection,
  SparkFault,
  SparkFaults,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.spark.HashTable

/** Which answers at `join_selection` are legal, from the facts alone.
  *
  * A decision names its build side always: where the answer leaves it open, the one that Spark would take
  * (`JoinSelectionHelper.getSmallerSide` of those that the join admits).
  */
object SelectionLegality {

  def verdict(
      answer: SelectionDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[SelectionDecision] =
    decide(answer, facts, guards) match {
      case Right(selection)       => Verdict(Some(SelectionDecision.of(selection)), Reason.Applied)
      case Left((reason, detail)) => Verdict(None, reason, Some(detail))
    }

  private type Refused = (Reason, String)

  private def decide(
      answer: SelectionDecision,
      facts: FactsRow,
      guards: Guards
  ): Either[Refused, Selection] = {
    val spark =
      facts.string("spark.strategy").map(Selection(_, facts.string("spark.build_side")))
    for {
      _ <- unknown(answer).toLeft(())
      _ <- userHint(facts).toLeft(())
      strategy <- answer.strategy.orElse(spark.map(_.strategy)).toRight(
        (Reason.NotAdmitted, "Spark has no strategy of its own here to take the build side for")
      )
      selection <- admitted(strategy, answer.buildSide, facts)
      _ <- if (spark.contains(selection)) Right(()) else other(selection, facts, guards)
    } yield selection
  }

  private def unknown(answer: SelectionDecision): Option[Refused] = {
    def notOf(known: Seq[String])(word: Option[String]) =
      word.filterNot(known.contains).map(w =>
        (Reason.UnknownWord, s"'${w.take(60)}' is not one of ${known.mkString(", ")}")
      )
    notOf(JoinSelectionPoint.words.map(_.word))(answer.strategy)
      .orElse(notOf(Seq(BuildLeft, BuildRight))(answer.buildSide))
  }

  private val fields = Map(BuildLeft -> "left", BuildRight -> "right")

  private def userHint(facts: FactsRow): Option[Refused] = {
    def on(side: String) =
      facts.string(s"join.${side}_hint").map(h => s"the query says $h on the $side side")
    on("left").orElse(on("right")).map((Reason.UserHint, _))
  }

  /** The selection that an answer comes to. */
  private def admitted(
      strategy: String,
      side: Option[String],
      facts: FactsRow
  ): Either[Refused, Selection] =
    strategy match {
      case Broadcast   => building(strategy, side, facts)("can_broadcast", "broadcast")
      case ShuffleHash =>
        building(strategy, side, facts)("can_shuffle_hash", "build a hash table from")
      case ShuffleMerge => sideless(strategy, side)(notMerged(facts))
      case _            =>
        throws(strategy, facts).toLeft(()).flatMap(_ =>
          sideless(strategy, side)(notProduct(facts))
        )
    }

  private def building(strategy: String, side: Option[String], facts: FactsRow)(
      fact: String,
      what: String
  ): Either[Refused, Selection] = {
    val can = Seq(BuildLeft, BuildRight).filter(s => facts.isTrue(s"${fields(s)}.$fact"))
    def cannot(which: String) = Left(
      notAdmitted(
        strategy,
        s"a ${joinType(facts)} join${described(facts)} cannot $what $which side"
      )
    )
    side match {
      case Some(s) if can.contains(s) => Right(Selection(strategy, side))
      case Some(s)                    => cannot(s"its ${fields(s)}")
      case None if can.isEmpty        => cannot("either")
      case None                       => Right(Selection(strategy, Some(preferred(can, facts))))
    }
  }

  private def notAdmitted(strategy: String, why: String): Refused =
    (Reason.NotAdmitted, s"$strategy: $why")

  private def joinType(facts: FactsRow): String = facts.string("join.type").getOrElse("?")

  /** @param why
    *   the join cannot run so, if it cannot
    */
  private def sideless(strategy: String, side: Option[String])(
      why: Option[String]
  ): Either[Refused, Selection] =
    side
      .map(s => (Reason.Contradiction, s"$strategy builds from no side, the answer says $s"))
      .orElse(why.map(notAdmitted(strategy, _)))
      .toLeft(Selection(strategy, None))

  private def notMerged(facts: FactsRow): Option[String] =
    if (facts.isTrue("join.can_merge")) None
    else if (hasKeys(facts)) Some("the join keys' types cannot be sorted")
    else Some("the join has no equality keys")

  private def notProduct(facts: FactsRow): Option[String] =
    if (Seq("INNER", "CROSS").contains(joinType(facts))) None
    else Some(s"a ${joinType(facts)} join cannot run as a Cartesian product")

  /** Why a Cartesian product could throw where Spark's plan does not, if so: without equality keys Spark itself
    * evaluates the condition on all pairs.
    */
  private def throws(strategy: String, facts: FactsRow): Option[Refused] =
    if (!hasKeys(facts) || !facts.isTrue("join.condition_can_throw")) None
    else
      Some(
        (
          Reason.ConditionCanThrow,
          s"$strategy evaluates the whole condition on all pairs of rows, those too whose keys differ"
        )
      )

  private def hasKeys(facts: FactsRow): Boolean = facts.long("join.key_count").exists(_ > 0)

  private def described(facts: FactsRow): String =
    if (facts.isTrue("join.is_null_aware")) " that is a NOT IN"
    else if (hasKeys(facts)) ""
    else " without equality keys"

  /** Of two sides the one that Spark would build from. */
  private def preferred(can: Seq[String], facts: FactsRow): String = {
    val smaller =
      if (size("right", facts) <= size("left", facts)) BuildRight else BuildLeft
    if (can.size == 1) can.head
    else if (hasKeys(facts) || Seq("INNER", "CROSS", "FULL OUTER").contains(joinType(facts)))
      smaller
    else if (joinType(facts) == "RIGHT OUTER") BuildLeft
    else BuildRight
  }

  private def size(side: String, facts: FactsRow): Long =
    facts.long(s"$side.size_in_bytes").getOrElse(Long.MaxValue)

  /** Another one than Spark's. */
  private def other(
      selection: Selection,
      facts: FactsRow,
      guards: Guards
  ): Either[Refused, Unit] =
    SparkFaults
      .refusal(JoinSelectionPoint.name, "join.spark_faults", known(selection, facts), facts)
      .orElse(
        FirstMatch
          .keepsSparks(facts)
          .map(why => (Reason.ConditionCanThrow, s"${selection.strategy}: $why"))
      )
      .orElse(KeptPruning.asInSide(facts))
      .orElse(KeptPruning.asBroadcast("left", selection.strategy, facts))
      .orElse(KeptPruning.asBroadcast("right", selection.strategy, facts))
      .toLeft(())
      .flatMap(_ => guard(selection, facts, guards))

  /** In the words of the table of Spark's faults. */
  private def known(selection: Selection, facts: FactsRow): Seq[String] = {
    val shuffled = Seq(ShuffleHash, ShuffleMerge)
    val moves = shuffled.contains(selection.strategy) !=
      facts.string("spark.strategy").exists(shuffled.contains)
    selection.words +: (if (moves) Seq(SparkFault.OtherDistribution) else Nil)
  }

  private def guard(
      selection: Selection,
      facts: FactsRow,
      guards: Guards
  ): Either[Refused, Unit] = selection match {
    case Selection(Broadcast, Some(side))   => broadcastGuard(fields(side), facts, guards)
    case Selection(ShuffleHash, Some(side)) => hashGuard(fields(side), facts, guards)
    case Selection(ShuffleReplicate, _)     =>
      val smaller = math.min(size("left", facts), size("right", facts))
      if (smaller <= guards.maxBroadcastBytes) Right(())
      else
        Left(
          (
            Reason.GuardBroadcastBytes,
            s"the smaller side's $smaller bytes, which are read again and again, are more than the " +
              s"${guards.maxBroadcastBytes} of spark.aqepilot.guard.max_broadcast_bytes"
          )
        )
    case _ => Right(())
  }

  private def broadcastGuard(
      side: String,
      facts: FactsRow,
      guards: Guards
  ): Either[Refused, Unit] = {
    val rows = facts.long(s"$side.row_count")
    val bytes = size(side, facts)
    def refused(why: String) = Left((Reason.GuardBroadcastBytes, why))
    if (bytes > guards.maxBroadcastBytes)
      refused(
        s"$bytes bytes are more than the ${guards.maxBroadcastBytes} of spark.aqepilot.guard.max_broadcast_bytes"
      )
    else if (isGuessed(side, facts) && bytes > threshold(facts))
      refused(
        s"${ofFiles(bytes)}, more than the ${threshold(facts)} up to which Spark broadcasts such a side"
      )
    else if (rows.exists(_ > JoinGuards.MaxBroadcastRows))
      Left(
        (
          Reason.GuardBroadcastRows,
          s"${rows.get} rows are more than the ${JoinGuards.MaxBroadcastRows} that Spark can broadcast"
        )
      )
    else
      JoinGuards
        .broadcastTable(side, bytes, facts, guards)
        .map((Reason.GuardBroadcastBytes, _))
        .toLeft(())
  }

  /** Whether a side's size is that of compressed files, or a guess: what they hold as rows is not known. */
  private def isGuessed(side: String, facts: FactsRow): Boolean =
    facts.long(s"$side.row_count").isEmpty &&
      facts.string(s"$side.estimate_from").exists(Seq("FILES", "GUESS").contains)

  private def ofFiles(bytes: Long) =
    s"$bytes bytes are the size of files, whose rows may take much more (ANALYZE TABLE ... COMPUTE STATISTICS " +
      "tells Spark how many there are)"

  /** `spark.sql.autoBroadcastJoinThreshold`, its default where it is less: it is often set so that adaptive execution
    * decides by what it has measured.
    */
  private def threshold(facts: FactsRow): Long =
    math.max(DefaultThreshold, facts.long("conf.auto_broadcast_join_threshold").getOrElse(0L))

  private val DefaultThreshold = 10L << 20

  private def hashGuard(side: String, facts: FactsRow, guards: Guards): Either[Refused, Unit] = {
    val bytes = size(side, facts)
    val most = BigInt(threshold(facts)) * partitions(facts)
    val ofGuess =
      if (isGuessed(side, facts) && BigInt(bytes) > most)
        Some(
          s"${ofFiles(bytes)}, more than the $most up to which Spark builds hash tables of such a side"
        )
      else None
    guards
      .hashBuildTooLarge(hashBuildBytes(side, facts, guards.growth))
      .orElse(ofGuess)
      .map((Reason.GuardHashBuildBytes, _))
      .toLeft(())
  }

  /** That Spark would make of a shuffle. */
  private def partitions(facts: FactsRow): Long = math.max(
    1L,
    facts
      .long("conf.coalesce_partitions_initial_partition_num")
      .orElse(facts.long("conf.shuffle_partitions"))
      .getOrElse(1L)
  )

  /** Memory of the largest hash table that one task would build from the side: of the measured partitions
    * where its shuffle has run ([[JoinGuards.hashBuildBytes]]), else of its estimated bytes, evenly spread
    * over the shuffle partitions that Spark would make, or what coalescing may make of several.
    */
  def hashBuildBytes(side: String, facts: FactsRow, growth: Double): Long =
    JoinGuards.hashBuildBytes(facts, side, growth).getOrElse {
      val bytes = size(side, facts)
      val share =
        math.max(bytes / partitions(facts), JoinGuards.coalescedBytes(facts, bytes)).toDouble
      HashTable.bytesOfPart(share, bytes.toDouble, JoinGuards.rows(facts, side, bytes), growth)
    }
}

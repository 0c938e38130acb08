package io.aqepilot.decision

import org.apache.spark.sql.catalyst.InternalRow

/** Which answers at `skew_join` are legal, from the facts alone. */
object SkewLegality {

  private val sides = Seq("left", "right")

  def verdict(answer: InternalRow, facts: FactsRow, guards: Guards): Verdict = {
    val decision = SkewDecision.of(answer)
    def refused(reason: Reason)(detail: String) = Verdict(None, reason, Some(detail))
    notPositive(decision)
      .map(refused(Reason.OutOfRange))
      .orElse(wrongLength(decision, facts).map(refused(Reason.WrongLength)))
      .orElse(readLocally(decision, facts).map(refused(Reason.LocalReadAlreadySplits)))
      .orElse(notAdmitted(decision, facts).map(refused(Reason.NotAdmitted)))
      .orElse(tooMany(decision, facts, guards).map(refused(Reason.GuardPartitions)))
      .getOrElse(Verdict(Some(answer), Reason.Applied))
  }

  private def both(d: SkewDecision) = sides.zip(Seq(d.left, d.right))

  private def notPositive(d: SkewDecision): Option[String] = {
    val factor = d.factor.filterNot(f => f > 0 && !f.isInfinite).map(f => s"skew_factor is $f")
    val numbers = both(d).flatMap { case (side, says) =>
      Seq(
        says.threshold.filter(_ <= 0).map(n => s"${side}_threshold_bytes is $n"),
        says.target.filter(_ <= 0).map(n => s"${side}_target_bytes is $n"),
        says.splits.flatMap(_.find(_ <= 0)).map(n => s"${side}_splits has $n")
      )
    } :+ d.maxSplits.filter(_ <= 0).map(n => s"max_splits is $n")
    (factor +: numbers).flatten.headOption
  }

  private def wrongLength(d: SkewDecision, facts: FactsRow): Option[String] =
    both(d).flatMap { case (side, says) =>
      val partitions = facts.long(s"$side.num_partitions")
      says.splits.filterNot(s => partitions.contains(s.length.toLong)).map { s =>
        val there = partitions.fold("no shuffle of its own")(n => s"$n partitions")
        s"${side}_splits has ${s.length} elements and the $side side has $there"
      }
    }.headOption

  private def readLocally(d: SkewDecision, facts: FactsRow): Option[String] =
    if (!facts.isTrue("join.is_read_locally") || d.isSparks(facts)) None
    else
      Some(
        "Spark reads the streamed side where it was written, each task some of one map task's output"
      )

  private def notAdmitted(d: SkewDecision, facts: FactsRow): Option[String] = {
    val joinType = facts.string("join.type").getOrElse("?")
    val canSplit = sides.filter(side => facts.isTrue(s"$side.can_split"))
    def cannot(what: String) =
      s"the $what of this $joinType join cannot be split without wrong rows"
    if (canSplit.isEmpty) Some(cannot("partitions"))
    else
      both(d).collectFirst {
        case (side, says) if !canSplit.contains(side) && says.splits.exists(_.exists(_ > 1)) =>
          cannot(s"$side side")
      }
  }

  private def tooMany(d: SkewDecision, facts: FactsRow, guards: Guards): Option[String] = {
    val max = guards.maxPartitions.toLong
    val limit = s"more than the $max of spark.aqepilot.guard.max_partitions"
    val splits = d.sides(facts).zip(sides).map { case (split, side) =>
      split.filter(_ => facts.isTrue(s"$side.can_split")).map(side -> _)
    }
    val ofSide = splits.flatten.collectFirst {
      case (side, split) if sum(split.bytes.indices)(split.wanted) > max =>
        s"the answer asks for ${sum(split.bytes.indices)(split.wanted)} parts of the $side side, $limit"
    }
    def parts(of: Option[(String, SideSplits)], partition: Int): Long = of.fold(1L) {
      case (side, split) =>
        math.min(split.wanted(partition), facts.long(s"$side.num_mappers").getOrElse(Long.MaxValue))
    }
    def tasks = splits.flatten.headOption.fold(0L) { case (_, split) =>
      sum(split.bytes.indices)(p => product(parts(splits.head, p), parts(splits.last, p)))
    }
    d.maxSplits
      .filter(_ > max)
      .map(n => s"max_splits is $n, $limit")
      .orElse(ofSide)
      .orElse(if (tasks > max) Some(s"the answer asks for $tasks tasks, $limit") else None)
  }

  private def sum(partitions: Range)(of: Int => Long): Long = {
    var total = 0L
    partitions.foreach(p => total = math.min(MaxCount, total + math.min(MaxCount, of(p))))
    total
  }

  private def product(a: Long, b: Long): Long =
    if (a > MaxCount / math.max(1L, b)) MaxCount else a * b

  private val MaxCount = Long.MaxValue / 4
}

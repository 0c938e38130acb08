package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.decision.{Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason

/** Which answers at `skew_join` are legal, from the facts alone. */
object SkewLegality {

  private val sides = Seq("left", "right")

  def verdict(decision: SkewDecision, facts: FactsRow, guards: Guards): Verdict[SkewDecision] = {
    def refused(reason: Reason)(detail: String) = Verdict(None, reason, Some(detail))
    notPositive(decision)
      .map(refused(Reason.OutOfRange))
      .orElse(wrongLength(decision, facts).map(refused(Reason.WrongLength)))
      .orElse(readLocally(decision, facts).map(refused(Reason.LocalReadAlreadySplits)))
      .orElse(notAdmitted(decision, facts).map(refused(Reason.NotAdmitted)))
      .orElse(tooMany(decision, facts, guards).map(refused(Reason.GuardPartitions)))
      .getOrElse(Verdict(Some(decision), Reason.Applied))
  }

  private def both(d: SkewDecision) = sides.zip(Seq(d.left, d.right))

  private def notPositive(d: SkewDecision): Option[String] = {
    val factor = d.factor.filterNot(f => f > 0 && !f.isInfinite).map(f => s"skew_factor is $f")
    val numbers = both(d).flatMap { case (side, says) =>
      Seq(
        says.threshold.filter(_ <= 0).map(n => s"${side}_threshold_bytes is $n"),
        says.target.filter(_ <= 0).map(n => s"${side}_target_bytes is $n"),
        says.splits.flatMap(_.flatten.find(_ <= 0)).map(n => s"${side}_splits has $n")
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
        case (side, says)
            if !canSplit.contains(side) && says.splits.exists(_.flatten.exists(_ > 1)) =>
          cannot(s"$side side")
      }
  }

  private def tooMany(d: SkewDecision, facts: FactsRow, guards: Guards): Option[String] = {
    val max = guards.maxPartitions.toLong
    val limit = s"more than the $max of spark.aqepilot.guard.max_partitions"
    val wanted = d.sides(facts).zip(sides).collect {
      case (Some(split), side) if split.isAny && facts.isTrue(s"$side.can_split") =>
        side -> split.wanted
    }
    val ofSide = wanted.map { case (side, parts) => side -> sum(parts) }.collectFirst {
      case (side, parts) if parts > max =>
        s"the answer asks for $parts parts of the $side side, $limit"
    }
    def tasks = wanted
      .map { case (side, parts) => upTo(parts, facts.long(s"$side.num_mappers")) }
      .reduceOption(products)
      .fold(0L)(sum)
    d.maxSplits
      .filter(_ > max)
      .map(n => s"max_splits is $n, $limit")
      .orElse(ofSide)
      .orElse(if (tasks > max) Some(s"the answer asks for $tasks tasks, $limit") else None)
  }

  private def upTo(parts: Array[Long], mappers: Option[Long]): Array[Long] =
    each(parts.length)(i => math.min(parts(i), mappers.getOrElse(Long.MaxValue)))

  private def products(a: Array[Long], b: Array[Long]): Array[Long] =
    each(a.length)(i => if (a(i) > MaxCount / math.max(1L, b(i))) MaxCount else a(i) * b(i))

  private def sum(parts: Array[Long]): Long = {
    var total = 0L
    var i = 0
    while (i < parts.length) {
      total = math.min(MaxCount, total + math.min(MaxCount, parts(i)))
      i += 1
    }
    total
  }

  private def each(n: Int)(value: Int => Long): Array[Long] = {
    val values = new Array[Long](n)
    var i = 0
    while (i < n) {
      values(i) = value(i)
      i += 1
    }
    values
  }

  private val MaxCount = Long.MaxValue / 4
}

package org.apache.spark.sql.aqepilot.points.skew_join

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.decision.Guards
import org.apache.spark.sql.aqepilot.plans.joins.{HashBuilds, JoinStage, SkewLayout}
import org.apache.spark.sql.aqepilot.plans.promises.{
  PathAbove,
  PhysicalIntegrity,
  RequiredDistribution,
  Rewritten,
  UsersRepartitions
}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.spark.{FailOpen, OurCosts}
import org.apache.spark.sql.catalyst.plans.physical.UnspecifiedDistribution
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.joins.ShuffledJoin
import org.apache.spark.sql.execution.{ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** What became of a decision when it was put into the plan.
  *
  * @param plan
  *   the one that came in, unless the reason is APPLIED
  */
final case class SkewOutcome(plan: SparkPlan, reason: Reason, detail: Option[String])

/** Splits the shuffles of one stage, all over again.
  *
  * @param splits
  *   for each shuffle of the stage; None = leave it whole
  * @param force
  *   whether a further shuffle is accepted
  */
final private class SkewSplit(
    plan: SparkPlan,
    stage: JoinStage,
    splits: Seq[Option[SideSplits]],
    force: Boolean,
    guards: => Guards
) {

  def outcome: SkewOutcome = reads match {
    case Left(tasks) =>
      kept(
        Reason.GuardPartitions,
        s"the split makes more than $tasks tasks, the most that spark.aqepilot.guard.max_partitions allows"
      )
    case Right(None) if oneMapper.isDefined => kept(Reason.OneMapper, oneMapper.get)
    case Right(now) if isAsBefore(now)      => SkewOutcome(plan, Reason.Applied, detail(now))
    case Right(now)                         =>
      // An answer may leave whole what Spark has split, and with it the table that a task builds of it.
      HashBuilds.tooLarge(stage.root, stage.reading(now), guards) match {
        case Some(why) => kept(Reason.GuardHashBuildBytes, why)
        case None      => required(now)
      }
  }

  private def kept(reason: Reason, detail: String) = SkewOutcome(plan, reason, Some(detail))

  /** How each shuffle is to be read; None when nothing is split, Left when there would be too many tasks. */
  private lazy val reads: Either[Int, Option[Seq[Seq[ShufflePartitionSpec]]]] = {
    val lists = stage.shuffles.map(_ => mutable.ArrayBuffer.empty[ShufflePartitionSpec])
    val max = guards.maxPartitions.toLong
    var partition = 0
    var tasks = 0L
    while (partition < stage.numPartitions && tasks <= max) {
      val parts = stage.shuffles.zip(splits).map { case (shuffle, how) =>
        PartitionParts.of(shuffle, partition, how)
      }
      tasks += parts.foldLeft(1L)((n, p) => math.min(n * p.length, max + 1))
      if (tasks <= max)
        combinations(parts).foreach(_.zip(lists).foreach { case (spec, list) => list += spec })
      partition += 1
    }
    if (tasks > max) Left(guards.maxPartitions)
    else if (tasks == stage.numPartitions) Right(None)
    else Right(Some(lists.map(_.toSeq)))
  }

  /** Each part of one shuffle with each part of the others, the last one's varying fastest, as in Spark. */
  private def combinations(
      parts: Seq[Seq[ShufflePartitionSpec]]
  ): Seq[List[ShufflePartitionSpec]] =
    parts.foldRight(Seq(List.empty[ShufflePartitionSpec])) { (of, rest) =>
      for (part <- of; others <- rest) yield part :: others
    }

  private def isAsBefore(now: Option[Seq[Seq[ShufflePartitionSpec]]]): Boolean = now match {
    case None        => !stage.isSplit
    case Some(reads) =>
      stage.joins.forall {
        case j: ShuffledJoin => j.isSkewJoin
        case _               => true
      } &&
      stage.shuffles.zip(reads).forall { case (shuffle, read) => shuffle.read.contains(read) }
  }

  /** Where a split was wanted, nothing could be split, and the reason is that one map task wrote it all. */
  private lazy val oneMapper: Option[String] = {
    val wanted = for {
      (shuffle, Some(how)) <- stage.shuffles.zip(splits)
      partition <- how.bytes.indices if how.wanted(partition) > 1
    } yield (shuffle, partition)
    wanted.headOption
      .filter(_ => wanted.forall { case (shuffle, p) => PartitionParts.isOneMappers(shuffle, p) })
      .map { case (_, p) => s"all of partition $p is one map task's output" }
  }

  /** Names the partitions with fewer parts than asked for: parts are made of whole map outputs. */
  private def detail(now: Option[Seq[Seq[ShufflePartitionSpec]]]): Option[String] = {
    val short = for {
      (((shuffle, Some(how)), i)) <- stage.shuffles.zip(splits).zipWithIndex
      made = now.fold(Map.empty[Int, Int])(reads => SkewLayout.parts(reads(i)))
      partition <- how.bytes.indices
      if how.wanted(partition) > made.getOrElse(partition, 1)
    } yield (partition, made.getOrElse(partition, 1), how.wanted(partition), shuffle)
    short.headOption.map { case (partition, made, wanted, shuffle) =>
      val more = if (short.length > 1) s" (and ${short.length - 1} more)" else ""
      s"partition $partition has $made of $wanted parts$more: a part is whole outputs of map tasks, of " +
        s"which there are ${shuffle.stage.shuffle.numMappers}"
    }
  }

  private def required(now: Option[Seq[Seq[ShufflePartitionSpec]]]): SkewOutcome = {
    val part = if (now.isEmpty) bare else stage.reading(now)
    val redone = if (now.isEmpty) undone else PathAbove.replaced(undone, bare, part)
    lazy val restored = UsersRepartitions.restored(undone, redone)
    if (isValid(redone)) checked(redone, detail(now))
    else
      PathAbove.of(restored, part) match {
        case None =>
          kept(
            Reason.DistributionBroken,
            "the split breaks a repartition that the query's author asked for between its joins"
          )
        case Some(path) => path.ensured match {
            case Left(why)     => kept(Reason.DistributionBroken, why)
            case Right(mended) => accepted(restored, mended, now)
          }
      }
  }

  private def accepted(
      restored: SparkPlan,
      mended: SparkPlan,
      now: Option[Seq[Seq[ShufflePartitionSpec]]]
  ): SkewOutcome = {
    val added = SparksSplits.shuffles(mended) - SparksSplits.shuffles(undone)
    if (isSpoilt(restored, mended))
      kept(
        Reason.DistributionBroken,
        "the split takes a shuffle above an order or a repartition that the query's author asked for"
      )
    else if (added <= 0) checked(mended, detail(now))
    else if (!force) kept(Reason.ExtraShuffle, s"$added more shuffle(s)")
    else if (!ExtraShuffles.areAccepted)
      kept(Reason.NeedsCostEvaluator, s"$added more shuffle(s)")
    else checked(mended, detail(now).orElse(Some(s"$added more shuffle(s)")))
  }

  /** The plan as decided, if all else in it is as it came. */
  private def checked(now: SparkPlan, detail: Option[String]): SkewOutcome = {
    val rewritten = Rewritten.of(Seq(stage)).copy(addsShuffles = true)
    PhysicalIntegrity.fault(
      plan,
      now,
      rewritten,
      RequiredDistribution.current.getOrElse(UnspecifiedDistribution)
    ) match {
      case None      => SkewOutcome(now, Reason.Applied, detail)
      case Some(why) =>
        FailOpen.fault(SkewJoinPoint.name, why)
        kept(Reason.InvalidRewrite, why)
    }
  }

  /** Whether Spark's rule has put a shuffle where it spoils what the author wants of each partition: on
    * top of the whole plan, for the sake of a repartition, or over rows that the author sorted.
    */
  private def isSpoilt(restored: SparkPlan, mended: SparkPlan): Boolean = {
    def spoiling(plan: SparkPlan) = plan.collect {
      case e: ShuffleExchangeExec
          if UsersRepartitions.isRestored(e) || UsersRepartitions.isSorted(e.child) => e
    }.size
    spoiling(mended) > spoiling(restored)
  }

  private val bare: SparkPlan = if (stage.isSplit) stage.reading(None) else stage.root

  /** The plan without what Spark's own rule did here, the shuffles that it took for it included. */
  private lazy val undone: SparkPlan =
    if (stage.isSplit) SparksSplits.undone(plan, stage, bare) else plan

  private def isValid(now: SparkPlan): Boolean = RequiredDistribution.isKept(undone, now)
}

/** Whether AQE's cost evaluator would let a plan pass that has more shuffles for the sake of a split. */
private object ExtraShuffles {

  /** Ours accepts them for the joins that are forced. Spark's own accepts them for all joins of a query, by a setting. */
  def areAccepted: Boolean = {
    val conf = SQLConf.get
    OurCosts.compare(conf) ||
    (conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN) &&
      conf.getConf(SQLConf.ADAPTIVE_CUSTOM_COST_EVALUATOR_CLASS).isEmpty)
  }
}

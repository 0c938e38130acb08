package org.apache.spark.sql.aqepilot.plans.joins

import scala.collection.mutable

import org.apache.spark.MapOutputStatistics
import org.apache.spark.sql.aqepilot.facts.ShuffleFacts
import org.apache.spark.sql.aqepilot.spark.SkewedBroadcastJoins
import org.apache.spark.sql.catalyst.optimizer.BuildRight
import org.apache.spark.sql.catalyst.plans.logical.{
  HintInfo,
  Join,
  JoinHint,
  NO_BROADCAST_AND_REPLICATION
}
import org.apache.spark.sql.catalyst.plans.{
  Cross,
  ExistenceJoin,
  Inner,
  JoinType,
  LeftAnti,
  LeftOuter,
  LeftSemi,
  RightOuter
}
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  BroadcastQueryStageExec,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, Exchange}
import org.apache.spark.sql.execution.joins.{
  BaseJoinExec,
  BroadcastHashJoinExec,
  ShuffledHashJoinExec,
  ShuffledJoin,
  SortMergeJoinExec
}
import org.apache.spark.sql.execution.{
  FilterExec,
  ProjectExec,
  ShufflePartitionSpec,
  SortExec,
  SparkPlan,
  UnaryExecNode
}

/** A finished shuffle that a join reads.
  *
  * @param read
  *   how it is read now; None = each partition by one task
  * @param join
  *   the join right above it
  * @param canSplit
  *   whether its partitions may be split while all other shuffles of the stage are read in whole by each part
  */
final case class StageShuffle(
    stage: ShuffleQueryStageExec,
    read: Option[Seq[ShufflePartitionSpec]],
    join: BaseJoinExec,
    isLeft: Boolean,
    canSplit: Boolean
) {
  val stats: MapOutputStatistics = stage.mapStats.get

  lazy val sizes: ShuffleFacts = ShuffleFacts.of(stats)
}

/** The joins that run in one stage, down to the shuffles that they read: two for a shuffled join, the streamed
  * side's for a broadcast join.
  *
  * A part of a shuffle's partition is joined with the same partition of every other shuffle here. That gives the
  * right rows if at each join above the shuffle, its side may be split: a row of that side must find all its
  * partners in one task, and its absence there must not produce rows. Where Spark forbids to replicate a side of a
  * join, the other side is not split. Whatever stands above `root` has its distribution checked
  * by Spark.
  */
final class JoinStage(
    val root: BaseJoinExec,
    val joins: Seq[BaseJoinExec],
    val shuffles: Seq[StageShuffle]
) {

  val numPartitions: Int = shuffles.head.stats.bytesByPartitionId.length

  /** Whether a rule has split it already. */
  val isSplit: Boolean = shuffles.exists(_.read.isDefined)

  def of(join: BaseJoinExec, isLeft: Boolean): Option[StageShuffle] =
    shuffles.find(s => (s.join eq join) && s.isLeft == isLeft)

  /** The same joins over other reads of their shuffles.
    *
    * @param reads
    *   one for each of [[shuffles]]; None = each partition by one task
    */
  def reading(reads: Option[Seq[Seq[ShufflePartitionSpec]]]): SparkPlan = {
    val next = reads.map(_.iterator)
    def read(stage: ShuffleQueryStageExec): SparkPlan =
      next.fold[SparkPlan](stage)(specs => AQEShuffleReadExec(stage, specs.next()))
    def over(plan: SparkPlan): SparkPlan = plan match {
      case AQEShuffleReadExec(stage: ShuffleQueryStageExec, _) => read(stage)
      case stage: ShuffleQueryStageExec                        => read(stage)
      case j: SortMergeJoinExec                                =>
        val (left, right) = (over(j.left), over(j.right))
        tagged(j, j.copy(left = left, right = right, isSkewJoin = reads.isDefined))
      case j: ShuffledHashJoinExec =>
        val (left, right) = (over(j.left), over(j.right))
        tagged(j, j.copy(left = left, right = right, isSkewJoin = reads.isDefined))
      case j: BroadcastHashJoinExec =>
        val read =
          if (j.buildSide == BuildRight) j.copy(left = apart(over(j.left)))
          else j.copy(right = apart(over(j.right)))
        tagged(j, SkewedBroadcastJoins.marked(read, isSkewJoin = reads.isDefined))
      case other => other.withNewChildren(other.children.map(over))
    }
    over(root)
  }

  /** Keeps Spark's local reads away, which it puts right beneath a broadcast join: parts of one shuffle would no
    * longer meet their partners of another.
    */
  private def apart(streamed: SparkPlan): SparkPlan = streamed match {
    case read: AQEShuffleReadExec if shuffles.length > 1 => ProjectExec(read.output, read)
    case other                                           => other
  }

  private def tagged(from: SparkPlan, to: SparkPlan): SparkPlan = {
    to.copyTagsFrom(from)
    to
  }
}

object JoinStage {

  /** All in a plan that have run up to their joins, topmost first. */
  def in(plan: SparkPlan): Seq[JoinStage] = plan match {
    case join: BaseJoinExec if isSplittable(join) =>
      val search = new Search(join)
      if (search.isComplete) Seq(search.stage)
      else if (search.isWaiting) exchanges(join).flatMap(e => in(e.child))
      else join.children.flatMap(in)
    case other => other.children.flatMap(in)
  }

  /** Whether a join's shuffles can be split: nested loop joins and Cartesian products have none of their own. */
  def isSplittable(plan: SparkPlan): Boolean =
    plan.isInstanceOf[ShuffledJoin] || plan.isInstanceOf[BroadcastHashJoinExec]

  private def exchanges(plan: SparkPlan): Seq[Exchange] = plan match {
    case e: Exchange => Seq(e)
    case other       => other.children.flatMap(exchanges)
  }

  /** As `OptimizeSkewedJoin.canSplitLeftSide`; an existence join gives each left row once, too. */
  def canSplitLeft(joinType: JoinType): Boolean = joinType match {
    case Inner | Cross | LeftOuter | LeftSemi | LeftAnti | ExistenceJoin(_) => true
    case _                                                                  => false
  }

  /** As `OptimizeSkewedJoin.canSplitRightSide`. */
  def canSplitRight(joinType: JoinType): Boolean = joinType match {
    case Inner | Cross | RightOuter => true
    case _                          => false
  }

  final private class Search(root: BaseJoinExec) {
    private val joins = mutable.ArrayBuffer.empty[BaseJoinExec]
    private val shuffles = mutable.ArrayBuffer.empty[StageShuffle]
    private var fits = true
    private var waits = false
    visit(root, null, isLeft = true, canSplit = true)

    def isWaiting: Boolean = fits && waits

    def isComplete: Boolean =
      fits && !waits && shuffles.map(_.stats.bytesByPartitionId.length).distinct.length == 1

    def stage: JoinStage = new JoinStage(root, joins.toSeq, shuffles.toSeq)

    private def visit(
        plan: SparkPlan,
        above: BaseJoinExec,
        isLeft: Boolean,
        canSplit: Boolean
    ): Unit = plan match {
      case join: ShuffledJoin if join.condition.forall(_.deterministic) =>
        joins += join
        visit(join.left, join, isLeft = true, canSplit && admitsLeft(join))
        visit(join.right, join, isLeft = false, canSplit && admitsRight(join))
      case join: BroadcastHashJoinExec if join.condition.forall(_.deterministic) =>
        joins += join
        val (streamed, build, isLeft) =
          if (join.buildSide == BuildRight) (join.left, join.right, true)
          else (join.right, join.left, false)
        build match {
          case b: BroadcastQueryStageExec if b.isMaterialized =>
          case _                                              => waits = true
        }
        val streams = if (isLeft) admitsLeft(join) else admitsRight(join)
        visit(streamed, join, isLeft, canSplit && streams)
      case AQEShuffleReadExec(s: ShuffleQueryStageExec, read) =>
        shuffle(s, Some(read), above, isLeft, canSplit)
      case s: ShuffleQueryStageExec         => shuffle(s, None, above, isLeft, canSplit)
      case _: Exchange                      => waits = true
      case u: UnaryExecNode if keepsRows(u) => visit(u.child, above, isLeft, canSplit)
      case _                                => fits = false
    }

    private def admitsLeft(join: BaseJoinExec) =
      canSplitLeft(join.joinType) && !isKeptWhole(hint(join).rightHint)

    private def admitsRight(join: BaseJoinExec) =
      canSplitRight(join.joinType) && !isKeptWhole(hint(join).leftHint)

    private def hint(join: BaseJoinExec): JoinHint =
      JoinState.of(join).map(_.userHint)
        .orElse(join.logicalLink.collect { case j: Join => j.hint })
        .getOrElse(JoinHint.NONE)

    /** Whether the rows of a side may be read by one task only: a MERGE looks there whether several rows of its
      * source match one row of its target, and parts of the source would each read the whole target.
      */
    private def isKeptWhole(side: Option[HintInfo]): Boolean =
      side.exists(_.strategy.contains(NO_BROADCAST_AND_REPLICATION))

    private def shuffle(
        stage: ShuffleQueryStageExec,
        read: Option[Seq[ShufflePartitionSpec]],
        above: BaseJoinExec,
        isLeft: Boolean,
        canSplit: Boolean
    ): Unit =
      if (stage.shuffle.shuffleOrigin != ENSURE_REQUIREMENTS) fits = false
      else if (!stage.isMaterialized) waits = true
      else if (stage.mapStats.forall(_.bytesByPartitionId.isEmpty)) fits = false
      else shuffles += StageShuffle(stage, read, above, isLeft, canSplit)

    /** Whether it may be done again in each task that reads the same partition. */
    private def keepsRows(plan: UnaryExecNode): Boolean = plan match {
      case _: SortExec                    => true
      case _: ProjectExec | _: FilterExec => plan.expressions.forall(_.deterministic)
      case _                              => false
    }
  }
}

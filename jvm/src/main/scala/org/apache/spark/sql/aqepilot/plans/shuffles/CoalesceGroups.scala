package org.apache.spark.sql.aqepilot.plans.shuffles

import org.apache.spark.sql.aqepilot.spark.engines.StandIn
import org.apache.spark.sql.aqepilot.facts.ShuffleFacts
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  ExchangeQueryStageExec,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.aqepilot.SparkUnions
import org.apache.spark.sql.execution.exchange.{
  ENSURE_REQUIREMENTS,
  REBALANCE_PARTITIONS_BY_COL,
  REBALANCE_PARTITIONS_BY_NONE,
  REPARTITION_BY_COL,
  ShuffleOrigin
}
import org.apache.spark.sql.execution.joins.{
  BroadcastHashJoinExec,
  BroadcastNestedLoopJoinExec,
  CartesianProductExec
}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode, UnionExec}

/** Finished shuffles that tasks of a stage read together: they need equal numbers of partitions.
  *
  * @param root
  *   the largest part of the stage's plan in which all reads belong to the group
  * @param reads
  *   its shuffles, each with the node that reads it: the shuffle itself, or an AQEShuffleReadExec over it
  * @param underExplodingJoin
  *   whether a Cartesian product or nested loop join stands above the root
  */
final case class CoalesceGroup(
    root: SparkPlan,
    reads: Seq[(ShuffleQueryStageExec, SparkPlan)],
    underExplodingJoin: Boolean
) {
  val stages: Seq[ShuffleQueryStageExec] = reads.map(_._1)

  val ids: Set[Int] = stages.map(_.id).toSet

  def hasExplodingJoin: Boolean =
    underExplodingJoin || root.exists(CoalesceGroups.isExploding)

  def isRebalance: Boolean = stages.exists(s => CoalesceGroups.rebalances(s.shuffle.shuffleOrigin))

  /** Compressed bytes of its shuffles. */
  def shuffleBytes: Long = stages.flatMap(_.mapStats).map(ShuffleFacts.of(_).total).sum

  /** Size that a source which is written to, or a policy, asks for; None for several shuffles. */
  def requestedBytes: Option[Long] = stages match {
    case Seq(only) => only.advisoryPartitionSize
    case _         => None
  }

  /** Unique in a query: a subquery numbers its stages anew. */
  def key: Seq[(Int, Option[Int])] = stages.map(s => (s.id, s.mapStats.map(_.shuffleId)))

  /** The same for a person. */
  def name: String = {
    val shuffles = stages.map(_.mapStats.fold("empty")(_.shuffleId.toString)).mkString(", ")
    val word = if (reads.size == 1) "query stage" else "query stages"
    s"$word ${stages.map(_.id).mkString(", ")} (shuffle $shuffles)"
  }

  /** How many tasks read the group, and how, in a few words. */
  def strategy: String = {
    val (stage, read) = reads.maxBy { case (_, node) => CoalesceGroups.splits(node) }
    val tasks = CoalesceGroups.tasks(stage, read)
    val text = if (tasks == 1) "1 task" else s"$tasks tasks"
    val own = stage.shuffle.numPartitions
    read match {
      case r: AQEShuffleReadExec if r.isLocalRead => s"local read, $text"
      case r: AQEShuffleReadExec                  =>
        val split =
          if (r.hasSkewedPartition) Seq(s"${CoalesceGroups.splits(r)} of them splits") else Nil
        val coalesced = if (r.hasCoalescedPartition) Seq(s"coalesced from $own") else Nil
        (text +: (coalesced ++ split)).mkString(", ")
      case _ => text
    }
  }

  def isLocalRead: Boolean = reads.exists {
    case (_, r: AQEShuffleReadExec) => r.isLocalRead
    case _                          => false
  }

  def tasks: Int = reads.map { case (stage, read) => CoalesceGroups.tasks(stage, read) }.max
}

/** Finds the groups of a stage's plan, as Spark forms them.
  *
  * Source: `CoalesceShufflePartitions.collectCoalesceGroups`.
  */
object CoalesceGroups {

  /** Origins whose number of partitions Spark is free to change: not `REPARTITION(n)`. */
  val origins: Seq[ShuffleOrigin] = Seq(
    ENSURE_REQUIREMENTS,
    REPARTITION_BY_COL,
    REBALANCE_PARTITIONS_BY_NONE,
    REBALANCE_PARTITIONS_BY_COL
  )

  def rebalances(origin: ShuffleOrigin): Boolean =
    origin == REBALANCE_PARTITIONS_BY_NONE || origin == REBALANCE_PARTITIONS_BY_COL

  private val Exploding = Seq(StandIn.NestedLoop, StandIn.Cartesian)

  /** Whether a join may make many rows of each. */
  def isExploding(plan: SparkPlan): Boolean = plan match {
    case _: BroadcastNestedLoopJoinExec | _: CartesianProductExec => true
    case other => StandIn.join(other).exists(j => Exploding.contains(j.kind))
  }

  /** The groups of a stage's plan; those of shuffles without statistics (no input at all) left out. */
  def of(plan: SparkPlan): Seq[CoalesceGroup] =
    groups(plan, underExploding = false).filter(_.stages.exists(_.mapStats.isDefined))

  private def groups(plan: SparkPlan, underExploding: Boolean): Seq[CoalesceGroup] = plan match {
    case AQEShuffleReadExec(_: ShuffleQueryStageExec, _) => group(plan, underExploding)
    case unary: UnaryExecNode                            => groups(unary.child, underExploding)
    case p if readsApart(p)                              =>
      p.children.flatMap(groups(_, underExploding || isExploding(p)))
    case p if p.collectLeaves().forall(_.isInstanceOf[ExchangeQueryStageExec]) =>
      group(p, underExploding)
    case _ => Nil
  }

  private def group(root: SparkPlan, underExploding: Boolean): Seq[CoalesceGroup] = {
    val reads = readsOf(root)
    if (reads.nonEmpty && reads.forall { case (stage, _) => isSupported(stage) })
      Seq(CoalesceGroup(root, reads, underExploding))
    else Nil
  }

  private def isSupported(stage: ShuffleQueryStageExec): Boolean =
    stage.shuffle.outputPartitioning != SinglePartition &&
      origins.contains(stage.shuffle.shuffleOrigin)

  /** Whether each child may have a number of partitions of its own. */
  private def readsApart(plan: SparkPlan): Boolean = plan match {
    case union: UnionExec => SparkUnions.readsApart(union)
    case _: CartesianProductExec | _: BroadcastHashJoinExec | _: BroadcastNestedLoopJoinExec => true
    case _ => false
  }

  /** Each finished shuffle that a plan reads, with the node that reads it. */
  def readsOf(plan: SparkPlan): Seq[(ShuffleQueryStageExec, SparkPlan)] = plan match {
    case r @ AQEShuffleReadExec(s: ShuffleQueryStageExec, _) => Seq((s, r))
    case s: ShuffleQueryStageExec                            => Seq((s, s))
    case other                                               => other.children.flatMap(readsOf)
  }

  def tasks(stage: ShuffleQueryStageExec, read: SparkPlan): Int = read match {
    case r: AQEShuffleReadExec => r.partitionSpecs.length
    case _                     => stage.shuffle.numPartitions
  }

  private[aqepilot] def splits(read: SparkPlan): Int = read match {
    case r: AQEShuffleReadExec => r.partitionSpecs.count(UndoneReads.isSplit)
    case _                     => 0
  }

  /** The plan with other nodes reading some of its shuffles. */
  def replace(plan: SparkPlan, reads: Map[Int, SparkPlan]): SparkPlan = plan match {
    case AQEShuffleReadExec(s: ShuffleQueryStageExec, _) => reads.getOrElse(s.id, plan)
    case s: ShuffleQueryStageExec                        => reads.getOrElse(s.id, plan)
    case other                                           => other.mapChildren(replace(_, reads))
  }
}

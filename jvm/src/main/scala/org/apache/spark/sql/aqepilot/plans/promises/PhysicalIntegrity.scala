package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.plans.joins.JoinStage
import org.apache.spark.sql.aqepilot.plans.shuffles.ShuffleGroups
import org.apache.spark.sql.aqepilot.spark.SkewedBroadcastJoins
import org.apache.spark.sql.catalyst.expressions.SortOrder
import org.apache.spark.sql.catalyst.plans.logical.Sort
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, UnspecifiedDistribution}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{
  ENSURE_REQUIREMENTS,
  ShuffleExchangeExec,
  ValidateRequirements
}
import org.apache.spark.sql.execution.joins.{
  BroadcastHashJoinExec,
  ShuffledHashJoinExec,
  ShuffledJoin,
  SortMergeJoinExec
}
import org.apache.spark.sql.execution.{ProjectExec, SortExec, SparkPlan}

/** What a decision may change of a physical plan; all else has to stay as it came.
  *
  * @param reads
  *   ids of the finished shuffles that may be read otherwise
  * @param joins
  *   those that may be marked as split, or become sort-merge joins
  * @param numbered
  *   shuffles that may get another number of partitions
  * @param dropped
  *   shuffles that may go
  * @param addsShuffles
  *   whether shuffles of Spark's own may come and go above the joins
  */
final case class Rewritten(
    reads: Set[Int] = Set.empty,
    joins: Seq[SparkPlan] = Nil,
    numbered: Seq[SparkPlan] = Nil,
    dropped: Seq[SparkPlan] = Nil,
    addsShuffles: Boolean = false
)

object Rewritten {

  /** The joins of stages, and how they read their shuffles. */
  def of(stages: Seq[JoinStage]): Rewritten =
    Rewritten(stages.flatMap(_.shuffles.map(_.stage.id)).toSet, stages.flatMap(_.joins))
}

/** The last look at a physical plan that was rewritten, as [[PlanIntegrity]] is for logical ones: the leaves are the
  * very same, so their partitions are; each operator, each join beside and each shuffle is as it came, but for what was
  * decided; and what an operator, or the query's author, was given of distribution and order is still given. What it
  * finds is a fault of ours: the plan that came in is kept, and the fault is counted.
  */
object PhysicalIntegrity {

  /** What is wrong with a plan that is to stand for another; None for nothing. */
  def fault(
      before: SparkPlan,
      after: SparkPlan,
      rewritten: Rewritten,
      required: Distribution = UnspecifiedDistribution
  ): Option[String] =
    if (before eq after) None
    else
      new PhysicalIntegrity(rewritten).differing(before, after).orElse {
        if (before.output != after.output) Some("the output differs")
        else if (isGiven(before, required) && !isGiven(after, required))
          Some("the result is not distributed as the query's author wants")
        else None
      }

  private def isGiven(plan: SparkPlan, required: Distribution) =
    UsersRepartitions.partitioning(plan).exists(_.satisfies(required))
}

final private class PhysicalIntegrity(rewritten: Rewritten) {

  def differing(before: SparkPlan, after: SparkPlan): Option[String] =
    differing(before, after, isNear = true)

  /** @param isNear
    *   whether a shuffle may come here: above a decided join, or right beside what is above it. The parts of the join
    *   itself are matched by their places.
    */
  private def differing(before: SparkPlan, after: SparkPlan, isNear: Boolean): Option[String] =
    if (before eq after) None
    else if (isSame(before, after)) ofPair(before, after)
    else if (mayCome(after, isNear)) differing(before, after.children.head, isNear)
    else if (mayGo(before, after, isNear))
      differing(before.children.head, after, isNear)
    else Some(s"${before.nodeName} has become ${after.nodeName}, or another ${after.nodeName}")

  private def ofPair(before: SparkPlan, after: SparkPlan): Option[String] = {
    val isAbove = !isDecided(before) && before.exists(isDecided)
    before.children.zip(after.children)
      .flatMap { case (b, a) => differing(b, a, isAbove) }.headOption
      .orElse {
        if (isSatisfied(before) && !isSatisfied(after))
          Some(s"${after.nodeName} lacks a distribution or an order that it needs")
        else if (isSplit(after) && !isPaired(after))
          Some(s"the sides of a split ${after.nodeName} have different numbers of partitions")
        else None
      }
  }

  private def isDecided(join: SparkPlan) = rewritten.joins.exists(_ eq join)

  /** Whether an operator is the one that came in, its children and what was decided left out. A leaf is not: another
    * object may have other partitions, of which equality says nothing.
    */
  private def isSame(before: SparkPlan, after: SparkPlan): Boolean =
    before.children.nonEmpty && before.children.size == after.children.size &&
      ((before, after) match {
        case (b: ShuffleExchangeExec, a: ShuffleExchangeExec)
            if rewritten.numbered.exists(_ eq b) =>
          val number = a.outputPartitioning.numPartitions
          ShuffleGroups.withNumber(b, number).withNewChildren(a.children) == a
        case (b: ShuffledHashJoinExec, a: SortMergeJoinExec) if isDecided(b) =>
          b.leftKeys == a.leftKeys && b.rightKeys == a.rightKeys && b.joinType == a.joinType &&
          b.condition == a.condition && b.isSkewJoin == a.isSkewJoin
        case (b, a) if isDecided(b) => unmarked(b).withNewChildren(a.children) == unmarked(a)
        case (b, a)                 => keyed(b, a).withNewChildren(a.children) == a
      })

  private def unmarked(join: SparkPlan): SparkPlan = join match {
    case j: SortMergeJoinExec     => j.copy(isSkewJoin = false)
    case j: ShuffledHashJoinExec  => j.copy(isSkewJoin = false)
    case j: BroadcastHashJoinExec => SkewedBroadcastJoins.marked(j, isSkewJoin = false)
    case other                    => other
  }

  /** With its keys in the order of another's: Spark's rule brings a join's keys into the order of a shuffle. */
  private def keyed(join: SparkPlan, as: SparkPlan): SparkPlan = (join, as) match {
    case (b: ShuffledJoin, a: ShuffledJoin) =>
      val (old, now) = (b.leftKeys.zip(b.rightKeys), a.leftKeys.zip(a.rightKeys))
      if (old == now || old.diff(now).nonEmpty || now.diff(old).nonEmpty) b
      else
        b match {
          case j: SortMergeJoinExec    => j.copy(leftKeys = a.leftKeys, rightKeys = a.rightKeys)
          case j: ShuffledHashJoinExec => j.copy(leftKeys = a.leftKeys, rightKeys = a.rightKeys)
          case other                   => other
        }
    case _ => join
  }

  private def mayCome(plan: SparkPlan, isNear: Boolean): Boolean = plan match {
    case s: SortExec            => !s.global && (rewritten.addsShuffles || rewritten.joins.nonEmpty)
    case e: ShuffleExchangeExec =>
      rewritten.addsShuffles && isNear &&
      (e.shuffleOrigin == ENSURE_REQUIREMENTS || UsersRepartitions.isPutBack(e))
    case other => isRead(other)
  }

  private def mayGo(plan: SparkPlan, after: SparkPlan, isNear: Boolean): Boolean = plan match {
    case s: SortExec =>
      !s.global && rewritten.addsShuffles &&
      (!isUsers(s) || SortOrder.orderingSatisfies(after.outputOrdering, s.sortOrder))
    case e: ShuffleExchangeExec =>
      rewritten.dropped.exists(_ eq e) || rewritten.addsShuffles && isNear &&
      (e.shuffleOrigin == ENSURE_REQUIREMENTS || UsersRepartitions.isPutBack(e))
    case other => isRead(other)
  }

  private def isUsers(sort: SortExec): Boolean = sort.logicalLink.exists {
    case s: Sort => !s.global
    case _       => false
  }

  /** How a decided shuffle is read, and the projection that keeps local reads away from it. */
  private def isRead(plan: SparkPlan): Boolean = plan match {
    case AQEShuffleReadExec(s: ShuffleQueryStageExec, _) => rewritten.reads.contains(s.id)
    case ProjectExec(columns, read: AQEShuffleReadExec)  => columns == read.output && isRead(read)
    case _                                               => false
  }

  /** Whether its children give an operator what it needs. */
  private def isSatisfied(plan: SparkPlan): Boolean =
    try ValidateRequirements.validate(plan.withNewChildren(plan.children.map(Opaque(_))))
    // Of a join whose sides have different numbers of partitions.
    catch { case _: IllegalArgumentException => false }

  private def isSplit(plan: SparkPlan): Boolean = plan match {
    case j: ShuffledJoin => j.isSkewJoin
    case _               => false
  }

  private def isPaired(join: SparkPlan): Boolean =
    join.children.flatMap(UsersRepartitions.partitioning(_)).map(_.numPartitions).distinct.size == 1
}

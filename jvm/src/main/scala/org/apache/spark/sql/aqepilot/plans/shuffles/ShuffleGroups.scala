package org.apache.spark.sql.aqepilot.plans.shuffles

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.facts.OncePerNode
import org.apache.spark.sql.aqepilot.spark.ShufflePartitionings
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.physical.{
  Partitioning,
  PartitioningCollection,
  SinglePartition,
  UnknownPartitioning,
  UnspecifiedDistribution
}
import org.apache.spark.sql.execution.adaptive.{QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{
  ENSURE_REQUIREMENTS,
  Exchange,
  ReusedExchangeExec,
  ShuffleExchangeExec
}
import org.apache.spark.sql.execution.joins.CartesianProductExec
import org.apache.spark.sql.execution.{SparkPlan, UnionExec}

/** Shuffles that one stage reads and that must therefore have as many partitions.
  *
  * @param shuffles
  *   not started, added by Spark
  * @param needless
  *   not started, and there only because what it reads has another number of partitions than Spark's default
  * @param started
  *   the number that the group has, because a shuffle of it, or an equal one elsewhere, was started
  * @param isFixed
  *   whether the user, a bucketed table or a source gives the number
  * @param readers
  *   the tops of the stages that read them
  * @param shapes
  *   those of `shuffles`, by [[ShuffleShapes]]
  */
final case class ShuffleGroup(
    shuffles: Seq[ShuffleExchangeExec],
    needless: Seq[ShuffleExchangeExec],
    started: Option[Int],
    isFixed: Boolean,
    readers: Seq[SparkPlan],
    shapes: Seq[Int]
) {

  /** Spark's numbers. Never ask a shuffle for its own `numPartitions`: that makes its RDD, and runs a job to
    * sample what a global sort reads.
    */
  def numbers: Seq[Int] = shuffles.map(_.outputPartitioning.numPartitions)

  /** Spark's number, the largest where it has not made them alike. */
  def number: Int = numbers.max

  private[aqepilot] def +(that: ShuffleGroup) = ShuffleGroup(
    shuffles ++ that.shuffles,
    needless ++ that.needless,
    started.orElse(that.started),
    isFixed || that.isFixed,
    readers ++ that.readers.filterNot(r => readers.exists(_ eq r)),
    shapes ++ that.shapes
  )
}

object ShuffleGroups {

  /** The groups of a plan that have a shuffle which is not started. Groups with equal shuffles are one, so
    * that a shuffle's result is still reused where it was.
    *
    * @param shapes
    *   the query's
    */
  def of(plan: SparkPlan, shapes: ShuffleShapes): Seq[ShuffleGroup] = {
    val groups = new ShuffleReaders().stages(plan).filter(_.shuffles.nonEmpty)
    if (groups.isEmpty) Nil
    else {
      val started = startedShuffles(plan)
      val shape = shapes.numbering(groups.flatMap(_.shuffles) ++ started)
      val known = started.map(s => shape(s) -> s.shuffle.outputPartitioning.numPartitions).toMap
      merged(groups.map { group =>
        val own = group.shuffles.map(shape)
        group.copy(
          started = group.started.orElse(own.flatMap(known.get).headOption),
          shapes = own
        )
      })
    }
  }

  def withNumber(shuffle: ShuffleExchangeExec, number: Int): ShuffleExchangeExec =
    if (shuffle.outputPartitioning.numPartitions == number) shuffle
    else
      ShufflePartitionings.withNumber(shuffle.outputPartitioning, number).fold(shuffle) { p =>
        val changed = shuffle.copy(outputPartitioning = p)
        changed.copyTagsFrom(shuffle)
        changed
      }

  /** The logical plan whose rows a shuffle carries. */
  def link(shuffle: ShuffleExchangeExec): Option[LogicalPlan] =
    shuffle.child.collectFirst { case p if p.logicalLink.isDefined => p.logicalLink.get }

  private[aqepilot] def isSparks(e: ShuffleExchangeExec): Boolean =
    e.shuffleOrigin == ENSURE_REQUIREMENTS &&
      ShufflePartitionings.withNumber(e.outputPartitioning, 1).isDefined

  private def startedShuffles(plan: SparkPlan): Seq[ShuffleQueryStageExec] =
    plan.collect {
      case s: ShuffleQueryStageExec => startedShuffles(s.plan) :+ s
      case s: QueryStageExec        => startedShuffles(s.plan)
    }.flatten

  private def merged(groups: Seq[ShuffleGroup]): Seq[ShuffleGroup] =
    groups.foldLeft(Vector.empty[ShuffleGroup]) { (done, group) =>
      val (equal, others) = done.partition(_.shapes.exists(group.shapes.contains))
      others :+ equal.foldRight(group)(_ + _)
    }
}

/** Finds the groups of one plan. */
final private class ShuffleReaders {
  import ShuffleGroups.isSparks

  def stages(plan: SparkPlan): Seq[ShuffleGroup] = {
    val below = mutable.ArrayBuffer.empty[SparkPlan]
    val group = read(plan, plan, below, isNeeded = false)
    group +: below.toSeq.flatMap(stages)
  }

  private def nothing(reader: SparkPlan) =
    ShuffleGroup(Nil, Nil, None, isFixed = false, Seq(reader), Nil)

  /** What a stage reads whose top is `reader`.
    *
    * @param below
    *   gets the tops of other stages, and of parts of this one whose partitions are counted on their own
    * @param isNeeded
    *   whether an operator above needs the rows distributed
    */
  private def read(
      plan: SparkPlan,
      reader: SparkPlan,
      below: mutable.Buffer[SparkPlan],
      isNeeded: Boolean
  ): ShuffleGroup = plan match {
    case e: ShuffleExchangeExec if isSparks(e) =>
      below += e.child
      startedBeneath(e) match {
        case Some(number) => nothing(reader).copy(needless = Seq(e), started = Some(number))
        case None         => nothing(reader).copy(shuffles = Seq(e))
      }
    case e: Exchange =>
      below ++= e.children
      nothing(reader).copy(isFixed = isCounted(e.outputPartitioning))
    case s: ShuffleQueryStageExec if isCounted(s.outputPartitioning) =>
      val number = s.shuffle.outputPartitioning.numPartitions
      nothing(reader).copy(started = Some(number), isFixed = !isOfSparks(s))
    case s: QueryStageExec                                             => nothing(reader)
    case u: UnionExec if !isNeeded || !isCounted(u.outputPartitioning) => apart(u, reader, below)
    case c: CartesianProductExec                                       => apart(c, reader, below)
    case leaf if leaf.children.isEmpty                                 =>
      nothing(reader).copy(isFixed = isCounted(leaf.outputPartitioning))
    case other =>
      other.children
        .zip(other.requiredChildDistribution)
        .map { case (child, distribution) =>
          read(child, reader, below, isNeeded || distribution != UnspecifiedDistribution)
        }
        .foldLeft(nothing(reader))(_ + _)
  }

  private def apart(plan: SparkPlan, reader: SparkPlan, below: mutable.Buffer[SparkPlan]) = {
    below ++= plan.children
    nothing(reader)
  }

  private def isOfSparks(stage: ShuffleQueryStageExec): Boolean =
    (stage.plan match {
      case r: ReusedExchangeExec => r.child
      case p                     => p
    }) match {
      case e: ShuffleExchangeExec => isSparks(e)
      case _                      => false
    }

  private def isCounted(partitioning: Partitioning): Boolean = partitioning match {
    case SinglePartition | UnknownPartitioning(_) => false
    case p                                        => p.numPartitions > 1
  }

  /** The number of partitions of what a shuffle reads, if that is partitioned by the same already, by shuffles
    * of Spark's that have all been started. Each shuffle is come to from every shuffle above it.
    */
  private val startedBeneath = new OncePerNode[ShuffleExchangeExec, Option[Int]](e => {
    val group = read(e.child, e.child, mutable.ArrayBuffer.empty, isNeeded = true)
    if (group.started.isEmpty || group.isFixed || group.shuffles.nonEmpty) None
    else flat(e.child.outputPartitioning).find(isSame(e.outputPartitioning, _)).map(_.numPartitions)
  })

  private def flat(partitioning: Partitioning): Seq[Partitioning] = partitioning match {
    case c: PartitioningCollection => c.partitionings.flatMap {
        case p: Partitioning => flat(p)
        case _               => Nil
      }
    case p => Seq(p)
  }

  private def isSame(a: Partitioning, b: Partitioning): Boolean =
    (ShufflePartitionings.withNumber(a, 1), ShufflePartitionings.withNumber(b, 1)) match {
      case (Some(x: Expression), Some(y: Expression)) => x.semanticEquals(y)
      case _                                          => false
    }
}

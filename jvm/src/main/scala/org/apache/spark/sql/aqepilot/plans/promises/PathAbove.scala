package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.catalyst.plans.physical.{
  BroadcastPartitioning,
  Distribution,
  HashPartitioning,
  Partitioning,
  PartitioningCollection,
  RangePartitioning,
  RoundRobinPartitioning,
  SinglePartition,
  UnknownPartitioning,
  UnspecifiedDistribution
}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{
  EnsureRequirements,
  Exchange,
  ShuffleExchangeExec,
  ValidateRequirements
}

/** What stands above a part of a plan that was rewritten, up to the next exchange or the plan's top: all that the
  * rewrite can have taken a distribution or an order from.
  *
  * Spark's rules that are run over it see nothing else. `EnsureRequirements` may change what it has been through
  * already: of a storage-partitioned join, partly clustered, it counts the scans' replicated partitions again and
  * loses or repeats rows. All beside the path, and the part itself, is [[Opaque]] to it.
  */
final class PathAbove private (plan: SparkPlan, path: List[SparkPlan], part: SparkPlan) {

  private val top = path.headOption.getOrElse(part)

  /** Only the plan's own top has to be distributed as the query's author wants. */
  private val required: Option[Distribution] =
    if (top eq plan) RequiredDistribution.current else None

  private def beside: Seq[SparkPlan] =
    part +: path.flatMap(_.children).filterNot(c => path.exists(_ eq c))

  private lazy val alone: SparkPlan = opaque(top)

  private def opaque(node: SparkPlan): SparkPlan =
    if (!path.exists(_ eq node)) node match {
      // Spark's rule gives a shuffle that has not run another number rather than put a second one over it.
      case e: ShuffleExchangeExec if e ne part => e.withNewChildren(Seq(Opaque(e.child)))
      case other                               => Opaque(other)
    }
    else node.withNewChildren(node.children.map(opaque))

  /** The plan with the shuffles and sorts that the path needs, or why it is left alone. */
  def ensured: Either[String, SparkPlan] =
    if (beside.exists(isSources))
      Left(
        "rows that are partitioned as a data source says are read without a shuffle in the same stage, where " +
          "Spark would pair their partitions anew"
      )
    else {
      val ensure = EnsureRequirements(RequiredDistribution.current.isDefined, required)
      val made = ensure(alone)
      if (ValidateRequirements.validate(made, required.getOrElse(UnspecifiedDistribution)))
        Right(put(made))
      else Left("no shuffle gives the operators above what they need")
    }

  /** The plan with what a rule of Spark's makes of the path. */
  def under(rule: SparkPlan => SparkPlan): SparkPlan = put(rule(alone))

  private def put(made: SparkPlan): SparkPlan = PathAbove.replaced(plan, top, Opaque.restored(made))

  private def isSources(plan: SparkPlan): Boolean =
    UsersRepartitions.partitioning(plan).exists(!PathAbove.isSparks(_))
}

object PathAbove {

  /** @return
    *   None where the part is not in the plan
    */
  def of(plan: SparkPlan, part: SparkPlan): Option[PathAbove] =
    down(plan, part).map { nodes =>
      val above = nodes.reverse.tail.takeWhile(!isEnd(_))
      new PathAbove(plan, above.reverse, part)
    }

  def replaced(plan: SparkPlan, from: SparkPlan, to: SparkPlan): SparkPlan =
    if (plan eq from) to
    else {
      val made = replacedBelow(plan, from, to)
      if (made eq plan) throw new IllegalStateException(s"${from.nodeName} is not there")
      made
    }

  private def replacedBelow(plan: SparkPlan, from: SparkPlan, to: SparkPlan): SparkPlan =
    plan.mapChildren(c => if (c eq from) to else replacedBelow(c, from, to))

  /** From the top of a plan down to a part of it. */
  private def down(plan: SparkPlan, part: SparkPlan): Option[List[SparkPlan]] =
    if (plan eq part) Some(List(plan))
    else plan.children.iterator.map(down(_, part)).collectFirst { case Some(p) => plan :: p }

  /** What is above a shuffle is distributed as the shuffle says, whatever is below; but for one that was put there
    * for what is below.
    */
  private def isEnd(plan: SparkPlan): Boolean = plan match {
    case e: ShuffleExchangeExec => !UsersRepartitions.isPutBack(e)
    case _: Exchange            => true
    case _                      => false
  }

  /** Whether Spark itself has partitioned the rows so. */
  private def isSparks(partitioning: Partitioning): Boolean = partitioning match {
    case _: HashPartitioning | _: RangePartitioning | _: RoundRobinPartitioning => true
    case _: UnknownPartitioning | _: BroadcastPartitioning | SinglePartition    => true
    case c: PartitioningCollection                                              =>
      c.partitionings.forall {
        case p: Partitioning => isSparks(p)
        case _               => false
      }
    case _ => false
  }
}

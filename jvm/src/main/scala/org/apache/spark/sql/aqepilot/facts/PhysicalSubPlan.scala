package org.apache.spark.sql.aqepilot.facts

import scala.annotation.tailrec

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  RangePartitioning
}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.{
  ColumnarToRowTransition,
  InputAdapter,
  ProjectExec,
  RowToColumnarTransition,
  SortExec,
  SparkPlan,
  WholeStageCodegenExec
}

/** What the rows of a physical node are the rows of. */
sealed abstract private[aqepilot] class PhysicalSubPlan {
  def signature: Option[Signature]

  /** Of a shuffle of the rows by these keys. */
  def shuffled(keys: Seq[Expression]): Option[Signature]
  def logical: LogicalPlan
}

/** A logical sub-plan. */
final private[aqepilot] case class WholeRows(logical: LogicalPlan) extends PhysicalSubPlan {
  override def signature: Option[Signature] = Signature.of(logical)
  override def shuffled(keys: Seq[Expression]): Option[Signature] =
    Signature.shuffled(logical, keys)
}

/** The groups of each task, which an aggregate's shuffle brings together. */
final private[aqepilot] case class PartialRows(logical: Aggregate) extends PhysicalSubPlan {
  override def signature: Option[Signature] = Signature.partial(logical)
  override def shuffled(keys: Seq[Expression]): Option[Signature] =
    Signature.partialShuffled(logical, keys)
}

private[aqepilot] object PhysicalSubPlan {

  /** None where Spark's plan does not say so. */
  def of(node: SparkPlan): Option[PhysicalSubPlan] = made(node).map(WholeRows).orElse {
    throughRows(node) match {
      case aggregate: BaseAggregateExec => partial(aggregate).map(PartialRows)
      case _                            => None
    }
  }

  /** Of a shuffle or broadcast: of what goes into it. */
  def into(exchange: Exchange): Option[PhysicalSubPlan] = of(exchange.child)

  /** Of a shuffle, under its keys. */
  def shuffle(exchange: Exchange): Option[Signature] =
    into(exchange).flatMap(_.shuffled(keys(exchange.outputPartitioning)))

  /** What rows are told apart by; none for a shuffle by no key. */
  def keys(partitioning: Partitioning): Seq[Expression] = partitioning match {
    case hash: HashPartitioning   => hash.expressions
    case range: RangePartitioning => range.ordering
    case _                        => Nil
  }

  /** The logical plan that a node was made for, if all of it. Those further down that were made for the same plan inherit
    * it, and do only a part of it.
    */
  def made(node: SparkPlan): Option[LogicalPlan] =
    node.getTagValue(SparkPlan.LOGICAL_PLAN_TAG).orElse(
      node match {
        case KeepsRows(child) => made(child)
        case _                => None
      }
    )

  /** A node that puts out its child's rows. */
  object KeepsRows {
    def unapply(node: SparkPlan): Option[SparkPlan] = node match {
      case p: ProjectExec             => Some(p.child)
      case p: SortExec                => Some(p.child)
      case p: InputAdapter            => Some(p.child)
      case p: WholeStageCodegenExec   => Some(p.child)
      case p: ColumnarToRowTransition => Some(p.child)
      case p: RowToColumnarTransition => Some(p.child)
      case _                          => None
    }
  }

  @tailrec private def throughRows(node: SparkPlan): SparkPlan = node match {
    case KeepsRows(child) => throughRows(child)
    case other            => other
  }

  /** Where a distinct function is among them, groups are told apart by its arguments, too. */
  private def partial(node: BaseAggregateExec): Option[Aggregate] =
    if (
      node.requiredChildDistributionExpressions.isDefined ||
      node.aggregateExpressions.exists(e => e.mode != Partial || e.isDistinct)
    ) None
    else
      node.logicalLink.collect {
        case a: Aggregate if !hasDistinct(a) => a
      }

  private def hasDistinct(a: Aggregate) = a.aggregateExpressions.exists(_.exists {
    case e: org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression => e.isDistinct
    case _                                                                          => false
  })
}

package org.apache.spark.sql.aqepilot.plans

import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  AggregateFunction,
  Count,
  Max,
  Min,
  Sum
}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  BaseEvalPython,
  Distinct,
  Expand,
  Filter,
  Generate,
  Join,
  LeafNode,
  LogicalPlan,
  Project,
  RepartitionOperation,
  Sort,
  Union
}
import org.apache.spark.sql.execution.{ExternalRDD, LogicalRDD}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.types.{DecimalType, IntegralType}

/** Whether a plan gives the same rows, in any order, where a query runs it more than once. What tasks fetch of a
  * shuffle comes in another order each time, so what takes some rows of many, or adds numbers whose sum depends on
  * the order, may come out otherwise, although each of its expressions counts as deterministic.
  */
object Repeatable {

  /** The first part found that may give other rows when it runs again. */
  def except(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case Stage(logical, _)      => except(logical)
    case node if !isAlike(node) => Some(node)
    case node => node.children.iterator.map(except).collectFirst { case Some(n) => n }
  }

  private def isAlike(node: LogicalPlan): Boolean =
    node.expressions.forall(_.deterministic) && (node match {
      // What a user's own RDD computes is not known.
      case _: LogicalRDD | _: ExternalRDD[_]                                    => false
      case _: LeafNode | _: Project | _: Filter | _: Generate | _: Expand       => true
      case _: Union | _: Join | _: Distinct | _: Sort | _: RepartitionOperation => true
      case _: BaseEvalPython                                                    => true
      case aggregate: Aggregate                                                 =>
        !aggregate.aggregateExpressions.exists(_.exists {
          case e: AggregateExpression => !isOfAnyOrder(e.aggregateFunction)
          case _                      => false
        })
      case _ => false
    })

  private def isOfAnyOrder(function: AggregateFunction): Boolean = function match {
    case _: Count | _: Min | _: Max => true
    case sum: Sum                   => isExact(sum)
    case _                          => false
  }

  private def isExact(sum: Sum): Boolean = sum.child.dataType match {
    case _: IntegralType | _: DecimalType => true
    case _                                => false
  }
}

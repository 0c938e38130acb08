package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  Average,
  Count,
  Max,
  Min,
  Sum
}
import org.apache.spark.sql.catalyst.expressions.{DenseRank, Expression, Rank, WindowExpression}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  BaseEvalPython,
  Distinct,
  Expand,
  Filter,
  Generate,
  Join,
  LeafNode,
  LocalRelation,
  LogicalPlan,
  OneRowRelation,
  Project,
  Range,
  RepartitionOperation,
  Sort,
  Union
}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, FileScan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.{DoubleType, FloatType}

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
    node.expressions.forall(e => e.deterministic && !e.exists(hangsOnOrder)) && (node match {
      case leaf: LeafNode                                                       => isRead(leaf)
      case _: Project | _: Filter | _: Generate | _: Expand | _: Aggregate      => true
      case _: Union | _: Join | _: Distinct | _: Sort | _: RepartitionOperation => true
      case _: BaseEvalPython                                                    => true
      case _                                                                    => false
    })

  /** Whether a leaf's rows are those of files or of the plan itself. A database may have changed when it is asked
    * again, and what a user's own RDD or source computes is not known. A cached relation is computed by each executor
    * that needs a block before another has stored it, and again where memory alone keeps it and does not suffice.
    */
  private def isRead(leaf: LeafNode): Boolean = leaf match {
    case relation: LogicalRelation               => relation.relation.isInstanceOf[HadoopFsRelation]
    case relation: DataSourceV2ScanRelation      => relation.scan.isInstanceOf[FileScan]
    case _: HiveTableRelation | _: LocalRelation => true
    case _: OneRowRelation | _: Range            => true
    case _                                       => false
  }

  /** Whether the value of an expression itself may differ where the rows that it is computed from come in another
    * order. A mean of integers adds doubles, whose sum is exact up to 2^53 only.
    */
  def hangsOnOrder(e: Expression): Boolean = e match {
    case a: AggregateExpression => a.aggregateFunction match {
        case _: Count | _: Min | _: Max => false
        case f @ (_: Sum | _: Average)  => f.exists(isFloat)
        case _                          => true
      }
    case WindowExpression(_: Rank | _: DenseRank, _) => false
    case _: WindowExpression                         => true
    case _                                           => false
  }

  private def isFloat(e: Expression) = e.dataType == DoubleType || e.dataType == FloatType
}

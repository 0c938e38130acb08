package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan}

/** Stands for a part of a plan that a rule of Spark's must not look into: it says how the part's rows are
  * distributed and ordered, and no more.
  */
final case class Opaque(part: SparkPlan) extends LeafExecNode {
  copyTagsFrom(part)
  override def output: Seq[Attribute] = part.output
  override def outputPartitioning: Partitioning = part.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = part.outputOrdering
  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("only looked at")
}

object Opaque {

  /** The plan with the parts in the place of what stood for them. */
  def restored(plan: SparkPlan): SparkPlan = plan match {
    case Opaque(part) => part
    case other        => other.mapChildren(restored)
  }
}

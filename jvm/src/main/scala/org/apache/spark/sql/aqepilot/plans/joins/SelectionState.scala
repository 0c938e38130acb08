package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.rule.Memory
import org.apache.spark.sql.catalyst.InternalRow

/** What asking about one join gave.
  *
  * @param sparkStrategy
  *   how Spark would run it
  */
final case class AskedSelection(
    asked: Asked[Any],
    spark: Option[Selection],
    sparkStrategy: Option[String]
) {

  def decision: Option[Selection] =
    asked.decision.map(row => Selection.of(row.asInstanceOf[InternalRow]))
}

/** What is remembered of a join for `join_selection`. Asked and recorded under the join's monitor. */
final class SelectionState {

  val memory = new Memory[AskedSelection]

  /** What the latest plan, adopted or not, was made with; None where Spark chose. */
  @volatile var inForce: Option[Selection] = None

  /** Whether the latest plan runs it as a Cartesian product, and which joins above it are such. */
  @volatile var isProduct: Boolean = false
  @volatile var productsAbove: Set[Long] = Set.empty
}

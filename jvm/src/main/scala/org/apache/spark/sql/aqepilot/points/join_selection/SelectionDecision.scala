package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.unsafe.types.UTF8String

/** What an answer at `join_selection` says; None = Spark's. A decision that is carried out has a strategy.
  *
  * @param strategy
  *   Spark's hint word; of an answer it may be any
  */
final case class SelectionDecision(strategy: Option[String], buildSide: Option[String]) {

  /** How the join is to run. */
  def selection: Option[Selection] = strategy.map(Selection(_, buildSide))

  /** Whether a join that runs so is what it asks for. */
  def isMetBy(ran: Selection): Boolean =
    strategy.forall(_ == ran.strategy) && buildSide.forall(ran.buildSide.contains(_))

  /** As the answer of a policy. */
  def row: InternalRow = new GenericInternalRow(
    Array[Any](
      strategy.map(UTF8String.fromString).orNull,
      buildSide.map(UTF8String.fromString).orNull
    )
  )
}

object SelectionDecision {

  def of(answer: InternalRow): SelectionDecision = {
    val row = new FactsRow(JoinSelectionPoint.answer, answer)
    SelectionDecision(row.string("strategy"), row.string("build_side"))
  }

  def of(selection: Selection): SelectionDecision =
    SelectionDecision(Some(selection.strategy), selection.buildSide)
}

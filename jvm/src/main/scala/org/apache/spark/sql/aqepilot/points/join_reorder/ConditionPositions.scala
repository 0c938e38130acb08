package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.facts.{Fact, Facts, FactsRow}

/** The positions of the relations that a condition of a chain is about. */
private[join_reorder] object ConditionPositions {

  private val fact = Fact.of[Seq[Int]]

  val facts: Facts[Seq[Int]] =
    new Facts(fact("positions", "positions of the relations, rising")(_.sorted))

  /** Of all conditions; None where the facts about a chain lack them, as in older logs. */
  def all(chainFacts: FactsRow): Option[Seq[Set[Int]]] =
    if (chainFacts.isNull("chain.condition_positions")) None
    else
      Some(
        chainFacts
          .rows("chain.condition_positions", facts.schema.length)
          .map(_.getArray(0).toIntArray().toSet)
      )
}

package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.types.StructType

/** The facts of a decision point: those that every point has, and its own.
  *
  * @tparam A
  *   what the point's own are read from
  */
final class PointFacts[A](own: Fact[A]*) {

  private type At = (Query, A)

  private val facts = new Facts[At](
    CommonFacts.groups.map(_.in[At](_._1)) ++ own.map(_.in[At](_._2)): _*
  )

  val schema: StructType = facts.schema

  /** Each value is computed when it is first read. */
  def row(query: Query, known: A): LazyRow = query.under(facts.row((query, known)))
}

package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.facts.{Fact, Facts, FactsRow}

/** A relation that is joined to what may prune it: in Spark's own order Spark reads only some of its partitions.
  *
  * @param position
  *   of the relation
  * @param by
  *   the positions of the other side of their join, which Spark would broadcast
  * @param beside
  *   those of the relation's own side, without it
  * @param isLarge
  *   whether Spark would broadcast no side that has the relation
  */
final case class PrunedRelation(
    position: Int,
    by: Set[Int],
    beside: Set[Int],
    isLarge: Boolean
) {

  /** Whether it is pruned as well where the relations are joined one after the other in this order.
    *
    * The other side has to be the same, as Spark prunes by no less and may not broadcast more. It is also to stay the
    * smaller of the two sides, where Spark might broadcast either.
    */
  def isKept(order: Seq[Int]): Boolean = {
    def before(relation: Int) = order.takeWhile(_ != relation).toSet
    def joinsLater =
      by.size == 1 && (if (isLarge) Set(position) else beside + position).subsetOf(before(by.head))
    def joinsFirst = before(position) == by
    if (isLarge) joinsLater || joinsFirst
    else if (by.min > position) joinsLater
    else joinsFirst && beside.isEmpty
  }
}

object PrunedRelation {

  private val fact = Fact.of[PrunedRelation]

  private[join_reorder] val facts: Facts[PrunedRelation] = new Facts(
    fact("position", "the relation's position")(_.position),
    fact(
      "by",
      "positions of the relations on the other side of their join, whose broadcast may prune it"
    )(_.by.toSeq.sorted),
    fact("beside", "positions of the other relations on its own side")(_.beside.toSeq.sorted),
    fact(
      "is_large",
      "whether it is larger than what Spark broadcasts, so that no side with it is"
    )(_.isLarge)
  )

  /** Those in the facts about a chain. */
  def all(chainFacts: FactsRow): Seq[PrunedRelation] =
    chainFacts.rows("chain.pruned", facts.schema.length).map { row =>
      def set(ordinal: Int) = row.getArray(ordinal).toIntArray().toSet
      PrunedRelation(row.getInt(0), set(1), set(2), row.getBoolean(3))
    }
}

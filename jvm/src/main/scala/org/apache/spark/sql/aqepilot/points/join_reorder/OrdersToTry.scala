package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain

/** Orders of a chain in which each relation is joined by a condition, where there is one that joins it: Spark's own, those
  * that begin with another relation, those in which one relation moves, and then all others.
  */
private[join_reorder] object OrdersToTry {

  def of(facts: FactsRow): Iterator[Seq[Int]] = {
    val spark = 0 until facts.long("chain.num_relations").getOrElse(0L).toInt
    val conditions = ConditionPositions.all(facts).getOrElse(Nil)

    def connected(joined: Seq[Int], rest: Seq[Int]): Seq[Int] = {
      val known = joined.toSet
      val next = rest.filter(JoinChain.connects(known, _, conditions))
      if (joined.isEmpty || next.isEmpty) rest else next
    }

    /** The nearest order of which a condition joins each relation. */
    def repaired(joined: Vector[Int], rest: Seq[Int]): Seq[Int] =
      if (rest.isEmpty) joined
      else {
        val next = connected(joined, rest).head
        repaired(joined :+ next, rest.filterNot(_ == next))
      }

    def every(joined: Vector[Int], rest: Seq[Int]): Iterator[Seq[Int]] =
      if (rest.isEmpty) Iterator.single(joined)
      else
        connected(joined, rest).iterator.flatMap { next =>
          every(joined :+ next, rest.filterNot(_ == next))
        }

    def beginning = spark.iterator.map(first => first +: spark.filterNot(_ == first))
    def moved = for {
      relation <- spark.iterator
      others = spark.filterNot(_ == relation)
      place <- spark.iterator
    } yield (others.take(place) :+ relation) ++ others.drop(place)
    if (spark.isEmpty) Iterator.empty
    else
      Iterator.single(spark) ++ (beginning ++ moved).map(repaired(Vector.empty, _)) ++
        every(Vector.empty, spark)
  }
}

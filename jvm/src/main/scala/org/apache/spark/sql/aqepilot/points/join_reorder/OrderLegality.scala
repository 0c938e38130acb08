package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.decision.{Guards, SparkFault, SparkFaults, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.aqepilot.reasons.Reason

/** Which answers are legal at `join_reorder`. */
object OrderLegality {

  /** From the facts alone. */
  def verdict(
      decision: OrderDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[OrderDecision] =
    judged(
      decision,
      decision match {
        case order: WholeOrder =>
          notPositions(order, facts.long("chain.num_relations").getOrElse(0L).toInt)
            .orElse(ofFault(order, facts))
            .orElse(readsMore(order, PrunedRelation.all(facts)))
            .orElse(tooManyProducts(order, facts, guards))
        case score: Score if !score.isNumber =>
          Some((Reason.OutOfRange, s"a score of ${score.value}: it must be a finite number"))
        case _ => None
      }
    )

  /** From the facts and the chain that they are about. */
  def verdict(chain: JoinChain)(
      decision: OrderDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[OrderDecision] = verdict(decision, facts, guards) match {
    case Verdict(Some(order: WholeOrder), _, _) =>
      judged(order, RuntimeFilters.lost(chain, order.order).map((Reason.ReadsMore, _)))
    case other => other
  }

  private def judged(
      decision: OrderDecision,
      refusal: Option[(Reason, String)]
  ): Verdict[OrderDecision] =
    refusal.fold(Verdict(Some(decision), Reason.Applied)) { case (reason, detail) =>
      Verdict(None, reason, Some(detail))
    }

  /** Why these are not the positions of n relations, each once; None when they are. */
  private def notPositions(order: WholeOrder, n: Int): Option[(Reason, String)] = {
    val positions = order.positions
    val twice = positions.groupBy(identity).collectFirst { case (p, ps) if ps.size > 1 => p }
    if (positions.size != n)
      Some((Reason.WrongLength, s"${positions.size} positions for $n relations"))
    else if (positions.exists(_.forall(p => p < 0 || p >= n)))
      Some((Reason.OutOfRange, s"a position that is null or not 0 to ${n - 1}"))
    else twice.flatten.map(p => (Reason.Contradiction, s"position $p is named twice"))
  }

  private def ofFault(order: WholeOrder, facts: FactsRow): Option[(Reason, String)] =
    if (order.isSparks) None
    else
      SparkFaults.refusal(
        JoinReorderPoint.name,
        "chain.spark_faults",
        Seq(SparkFault.Any),
        facts
      )

  /** Why Spark would read partitions that it may prune in its own order, if it would. */
  private def readsMore(
      order: WholeOrder,
      pruned: Seq[PrunedRelation]
  ): Option[(Reason, String)] =
    pruned.find(!_.isKept(order.order)).map { relation =>
      val by = relation.by.toSeq.sorted.mkString(", ")
      (
        Reason.ReadsMore,
        s"Spark may prune partitions of relation ${relation.position} by a broadcast of $by, " +
          "which another order takes away"
      )
    }

  private def tooManyProducts(
      order: WholeOrder,
      facts: FactsRow,
      guards: Guards
  ): Option[(Reason, String)] = for {
    conditions <- ConditionPositions.all(facts)
    sparks <- facts.long("chain.cross_products")
    further = JoinChain.crossProducts(order.order, conditions) - sparks
    if further > guards.maxCrossProducts
  } yield (
    Reason.CrossProduct,
    s"$further joins without a condition more than in Spark's own order; " +
      s"spark.aqepilot.guard.max_cross_products allows ${guards.maxCrossProducts}"
  )
}

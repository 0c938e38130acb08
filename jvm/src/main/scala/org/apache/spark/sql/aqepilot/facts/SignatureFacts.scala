package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike

/** What a decision is about, as facts: equal on each run and on each Spark, whatever policies change. */
object SignatureFacts {

  /** @param plan
    *   none where there is no such sub-plan
    */
  def plan[A](declared: Fact.Declared[A])(plan: A => Option[LogicalPlan]): Fact[A] =
    declared.fixed(
      "signature",
      "names the rows of this side on each run, under each order of joins and on each Spark: 16 hex digits; null " +
        "where the plan cannot be read"
    )(plan(_).flatMap(Signature.of).map(_.sameText))

  def shuffles[A](declared: Fact.Declared[A])(shuffles: A => Seq[ShuffleExchangeLike]): Fact[A] =
    declared.fixed(
      "signatures",
      "names the shuffles of the group on each run and on each Spark: 16 hex digits for each that can be read, sorted"
    )(shuffles(_).flatMap(PhysicalSubPlan.shuffle(_)).map(_.sameText).distinct.sorted)
}

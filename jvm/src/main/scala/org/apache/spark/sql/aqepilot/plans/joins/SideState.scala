package org.apache.spark.sql.aqepilot.plans.joins

/** What is remembered of one side of a join while its query runs. Guarded by the join's monitor. */
final class SideState {

  /** Whether a policy's word has ever been put into the plan here: Spark's own rule is silent since. */
  @volatile private[aqepilot] var overridden: Boolean = false

  /** The strategies, as hints, that our rule has left here: those of the plan that AQE goes on with are among them. */
  var ourHints: Set[Option[String]] = Set.empty

  /** Whether a policy's word is in the plan here. */
  @volatile var isDecided: Boolean = false
}

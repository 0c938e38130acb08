package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.rule.Memory

/** What asking about one side gave. */
final case class AskedSide(
    asked: Asked[Any],
    sparkWord: Option[String],
    sparkStrategy: Option[String]
) {

  /** The word to put into the plan. */
  def word: Option[String] = asked.decision.map(_.toString)
}

/** What is remembered of one side. Guarded by its join's monitor. */
final class SideState {

  val memory = new Memory[AskedSide]

  /** Whether a policy's word has ever been put into the plan here: Spark's own rule is silent since. */
  @volatile private[aqepilot] var overridden: Boolean = false

  /** The strategies, as hints, that our rule has left here: those of the plan that AQE goes on with are among them. */
  var leftWords: Set[Option[String]] = Set.empty

  /** Whether a policy's word is in the plan here. */
  @volatile var isDecided: Boolean = false
}

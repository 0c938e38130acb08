package org.apache.spark.sql.aqepilot.plans

import org.apache.spark.sql.aqepilot.decision.Asked

/** What asking about one side gave.
  *
  * @param key
  *   all that the answer depends on
  * @param number
  *   counts the askings of this side
  */
final case class AskedSide(
    key: Any,
    number: Int,
    asked: Asked,
    sparkWord: Option[String],
    sparkStrategy: Option[String]
) {

  /** The word to put into the plan. */
  def word: Option[String] = asked.enforced.map(_._2.toString)
}

/** What is remembered of one side. Guarded by its join's monitor. */
final class SideState {

  /** The latest answer, and what it was given for. */
  var asked: Option[AskedSide] = None

  /** How often it was asked about. */
  var askings: Int = 0

  /** Whether a policy's word has ever been put into the plan here: Spark's own rule is silent since. */
  @volatile private[aqepilot] var overridden: Boolean = false

  /** The strategies, as hints, that our rule has left here: those of the plan that AQE goes on with are among them. */
  var leftWords: Set[Option[String]] = Set.empty

  /** What was recorded last, so that the same is not recorded again. */
  var recorded: Option[Any] = None

  /** Whether a policy's word is in the plan here. */
  @volatile var isDecided: Boolean = false
}

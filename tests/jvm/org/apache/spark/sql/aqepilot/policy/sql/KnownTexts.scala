package org.apache.spark.sql.aqepilot.policy.sql

import scala.util.control.NoStackTrace

import org.apache.spark.sql.aqepilot.decision.DecisionPoint

/** Which texts have been compiled. */
object KnownTexts {

  final private class Unknown extends RuntimeException with NoStackTrace

  def has(text: String, point: DecisionPoint[_]): Boolean = {
    val key = CompiledCache.Key(text, point.facts, point.answer +: point.alternative.toSeq)
    try {
      PolicyCompiler.cached.getOrElseUpdate(key)(throw new Unknown)
      true
    } catch { case _: Unknown => false }
  }
}

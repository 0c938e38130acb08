package org.apache.spark.sql.aqepilot.ui

import org.apache.spark.sql.aqepilot.reasons.{Fate, Reason, Remedy}

import io.aqepilot.log.AqePilotDecision

/** What came of a decision, in words. */
private[ui] object Outcome {

  private val NotRefused = Set(Reason.Applied, Reason.Shadow, Reason.NullAnswer).map(_.code)

  /** Whether a policy had an answer, or should have had one, which was not carried out. */
  def isRefused(e: AqePilotDecision): Boolean = !e.applied && !NotRefused.contains(e.reason)

  /** None for a code that is not of this release. */
  def ofReason(code: String): Option[String] = meaning(Reason.all, code)

  /** None for a code that is not of this release. */
  def ofFate(code: String): Option[String] = meaning(Fate.all, code)

  /** What would be needed for the answer to be carried out, in Markdown; none where it was. */
  def needed(e: AqePilotDecision): Option[String] =
    if (isRefused(e)) Remedy.ofReason(e.reason) else None

  private def meaning(known: Seq[Reason], code: String) = known.find(_.code == code).map(_.meaning)
}

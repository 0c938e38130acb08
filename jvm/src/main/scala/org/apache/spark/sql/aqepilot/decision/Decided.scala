package org.apache.spark.sql.aqepilot.decision

import io.aqepilot.log.AqePilotDecision

/** A decision as the driver keeps it until its query ends: the values that its fate is read from, and its event before
  * any text in it is redacted. Nobody is shown it.
  *
  * @param event
  *   without its facts
  * @param id
  *   of what it is about, as its point has it: a chain of joins, a group of shuffles
  * @param chosen
  *   what the point's fates go by, where the answer was legal
  */
final case class Decided(
    event: AqePilotDecision,
    id: Option[Any] = None,
    chosen: Option[Any] = None
)

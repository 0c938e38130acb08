package org.apache.spark.sql.aqepilot.log

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.aqepilot.decision.{NamedPolicy, PolicySet}
import org.apache.spark.sql.aqepilot.doors.{FailOpen, Sessions}

import io.aqepilot.log.{AqePilotPolicyLoaded, EventSchema}

/** Tells the record, and on a fault the driver's log, of each policy that a session loads: once. */
object PolicyNews {

  private val MaxTold = 10000
  private val told = ConcurrentHashMap.newKeySet[(String, String, String, String, String)]()

  def tell(session: Sessions.Classic, set: PolicySet): Unit = if (set ne PolicySet.empty) {
    warn(set)
    set.policies.foreach { p =>
      if (told.size > MaxTold) told.clear()
      if (
        told.add((
          session.sessionUUID,
          p.name,
          p.point.name,
          p.revision,
          s"${p.mode.name} ${p.limit}"
        ))
      ) {
        DecisionLog.get(session.sparkContext).policyLoaded(event(session, p))
      }
    }
  }

  /** One line in the driver's log for each problem. */
  def warn(set: PolicySet): Unit = set.problems.foreach(FailOpen.problem)

  private def event(session: Sessions.Classic, p: NamedPolicy) = AqePilotPolicyLoaded(
    schemaVersion = EventSchema.Version,
    time = System.currentTimeMillis(),
    sessionId = session.sessionUUID,
    policy = p.name,
    point = p.point.name,
    revision = p.revision,
    text = p.text,
    when = p.when,
    mode = p.mode.name,
    source = p.source,
    user = session.sparkContext.sparkUser,
    error = p.error.map(e => s"${e.code}: ${e.message}"),
    limit = p.limit
  )
}

package org.apache.spark.sql.aqepilot.record

import java.util.{Collections, Set => JSet, WeakHashMap}

import org.apache.spark.sql.aqepilot.policy.{NamedPolicy, PolicySet}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Recent, Sessions}

import io.aqepilot.log.{AqePilotPolicyLoaded, EventSchema}

/** Tells the record, and on a fault the driver's log, of each policy that a session loads: once. */
object PolicyNews {

  /** Policy, point, revision, and mode with what limits it. */
  private type Loaded = (String, String, String, String)

  /** Of a session that loads more, the newest are known. */
  private val MostPosted = 1000

  private val postedOf =
    Collections.synchronizedMap(new WeakHashMap[Sessions.Classic, JSet[Loaded]])

  def tell(session: Sessions.Classic, set: PolicySet): Unit = if (set ne PolicySet.empty) {
    warn(set)
    val posted = postedOf.computeIfAbsent(session, _ => Recent.set(MostPosted))
    set.policies.foreach { p =>
      val loaded = (p.name, p.point.name, p.revision, s"${p.mode.name} ${p.limit}")
      if (posted.add(loaded))
        DecisionLog.of(session.sparkContext).policyLoaded(event(session, p))
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

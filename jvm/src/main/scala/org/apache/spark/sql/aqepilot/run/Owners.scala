package org.apache.spark.sql.aqepilot.run

import java.util.{Collections, LinkedHashMap, Map}

import org.apache.spark.sql.aqepilot.facts.QueryFacts
import org.apache.spark.sql.aqepilot.spark.Sessions

/** Which session's decisions are whose. `CacheManager` plans what `df.cache()` keeps in a copy of the user's
  * session; what is decided there belongs to the session whose query runs it.
  */
private[aqepilot] object Owners {

  private val MaxCopies = 1000

  private val known = Collections.synchronizedMap(new LinkedHashMap[String, String] {
    override def removeEldestEntry(e: Map.Entry[String, String]): Boolean = size > MaxCopies
  })

  /** The id of the session that a decision belongs to. */
  def of(session: Sessions.Classic, executionId: Option[Long]): String = {
    val own = session.sessionUUID
    val runs = QueryFacts.execution(executionId).map(_.sparkSession.sessionUUID)
    runs.filter(_ != own).foreach(known.put(own, _))
    runs.getOrElse(of(own))
  }

  /** The same for what was decided before the copy's owner was known: at the first planning. */
  def of(sessionId: String): String = known.getOrDefault(sessionId, sessionId)
}

package org.apache.spark.sql.aqepilot.policy.python

import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.internal.SQLConf

/** Who names a policy's text.
  *
  * @param isSubmitted
  *   whether the text is the application's own configuration
  * @param token
  *   of the session, if its own Python brought functions
  * @param waits
  *   whether to wait until a function is loaded; a query does not
  */
final case class Caller(isSubmitted: Boolean, token: Option[String], waits: Boolean)

object Caller {

  /** A session that waits. */
  def session(conf: SQLConf): Caller =
    Caller(isSubmitted = false, AqePilotConf.PythonToken.in(conf), waits = true)
}

package org.apache.spark.sql.aqepilot.spark

/** Does what starts a thread: a thread inherits the active session of the thread that starts it, which could not end
  * before it.
  */
object WithoutSession {
  def apply[T](body: => T): T = {
    val active = Sessions.active
    Sessions.forget()
    try body
    finally active.foreach(Sessions.activate)
  }
}

package io.aqepilot.python

import org.apache.spark.sql.aqepilot.python.SessionFunctions

/** What the driver's own Python may say of functions: only it holds the gateway to this. */
object PythonFunctions {

  /** Keeps a pickled function for a session.
    *
    * @param token
    *   the session's `spark.aqepilot.python.token`
    * @param session
    *   the session, whose end is the function's end; null for the driver's end
    * @param name
    *   what to call it in records
    * @param path
    *   directories to import from, as in PYTHONPATH
    * @param python
    *   the interpreter that pickled it
    * @return
    *   the policy's text that stands for it
    */
  def register(
      token: String,
      session: AnyRef,
      name: String,
      pickled: Array[Byte],
      path: String,
      python: String
  ): String = SessionFunctions.register(token, session, name, pickled, path, python)

  /** Lets a session use a text `python:<module>:<function>`. */
  def allow(token: String, session: AnyRef, text: String, path: String, python: String): Unit =
    SessionFunctions.allow(token, session, text, path, python)
}

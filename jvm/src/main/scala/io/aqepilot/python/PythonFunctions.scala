package io.aqepilot.python

import org.apache.spark.sql.aqepilot.python.SessionFunctions

/** What the driver's own Python may say of functions: only it holds the gateway to this. */
object PythonFunctions {

  /** Keeps a pickled function.
    *
    * @param name
    *   what to call it in records
    * @param path
    *   directories to import from, as in PYTHONPATH
    * @param python
    *   the interpreter that pickled it
    * @return
    *   the policy's text that stands for it
    */
  def register(name: String, pickled: Array[Byte], path: String, python: String): String =
    SessionFunctions.register(name, pickled, path, python)

  /** Lets the sessions of this driver use a text `python:<module>:<function>`. */
  def allow(text: String, path: String, python: String): Unit =
    SessionFunctions.allow(text, path, python)
}

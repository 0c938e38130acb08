package org.apache.spark.sql.aqepilot.policy.python

import java.io.File
import java.lang.ref.{ReferenceQueue, WeakReference}
import java.security.MessageDigest
import java.util.Map
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.spark.{Recent, Sessions}

/** A function that the driver's own Python brought: its pickle (empty for a text that names a module), where it
  * imports from, and its interpreter.
  */
final case class SessionFunction(pickled: Array[Byte], path: Seq[String], python: String)

/** The functions that each session's own Python brought, until the session is garbage. That Python calls this through
  * PySpark's gateway: who holds its secret runs code here anyway. A text alone, which any client can set, brings none.
  *
  * A session is known by a token, a random text in its setting `spark.aqepilot.python.token`: what Spark copies of a
  * session (for a stream, for a cache) has the setting too, and nobody else.
  *
  * Methods of an object would be static, and SQL calls such: who has [[SessionFunctions.ofDriver]] may bring functions.
  */
final class SessionFunctions private {
  import SessionFunctions.{MostFunctions, SessionEnd, paths}

  private val known = new ConcurrentHashMap[String, Map[String, SessionFunction]]()
  private val ends = new ConcurrentHashMap[String, SessionEnd]()
  private val garbage = new ReferenceQueue[AnyRef]
  private val changes = new AtomicLong

  private lazy val cleaner: Thread = {
    val thread = new Thread("aqepilot-python-sessions") {
      override def run(): Unit = {
        Sessions.forget()
        while (true) garbage.remove() match {
          case ended: SessionEnd if ends.remove(ended.token, ended) => end(ended.token)
          case _                                                    =>
        }
      }
    }
    thread.setDaemon(true)
    thread.start()
    thread
  }

  /** Grows with every function that comes, and with every session that ends. */
  def version: Long = changes.get

  /** Keeps a pickled function for a session.
    *
    * @param token
    *   the session's `spark.aqepilot.python.token`
    * @param session
    *   whose end is the function's end; null for the driver's end
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
  ): String = {
    val hash =
      MessageDigest.getInstance("SHA-256").digest(pickled).map(b => f"$b%02x").mkString
    val text = PythonText.pickled(name, hash)
    keep(token, session, text, SessionFunction(pickled, paths(path), python))
    text
  }

  /** Lets a session use a text `python:<module>:<function>`; any other is left alone. */
  def allow(token: String, session: AnyRef, text: String, path: String, python: String): Unit =
    PythonText.of(text) match {
      case Right(named: ImportedFunction) =>
        val function = SessionFunction(Array.emptyByteArray, paths(path), python)
        keep(token, session, named.text, function)
      case _ =>
    }

  /** Ends a session's processes, for its policies name no function any more. A stream that began before asks on: that
    * makes processes anew.
    */
  def rest(token: String): Unit = PythonWorkers.end(PythonOwner.Session(token))

  def get(token: String, text: String): Option[SessionFunction] =
    Option(known.get(token)).flatMap(functions => Option(functions.get(text)))

  /** The interpreter of a session's own Python. */
  private[python] def python(token: String): Option[String] =
    Option(known.get(token)).flatMap { functions =>
      functions.values.toArray(Array.empty[SessionFunction]).map(_.python).find(_.nonEmpty)
    }

  /** How many sessions have brought functions and are not garbage yet. */
  private[aqepilot] def sessions: Int = known.size

  private def keep(
      token: String,
      session: AnyRef,
      text: String,
      function: SessionFunction
  ): Unit = {
    if (session != null) {
      cleaner
      ends.computeIfAbsent(token, new SessionEnd(_, session, garbage))
    }
    known
      .computeIfAbsent(token, _ => Recent.map[String, SessionFunction](MostFunctions))
      .put(text, function)
    changes.incrementAndGet()
  }

  private def end(token: String): Unit = {
    known.remove(token)
    PythonWorkers.end(PythonOwner.Session(token))
    changes.incrementAndGet()
  }

}

object SessionFunctions {

  /** Those of all sessions. */
  val ofDriver: SessionFunctions = new SessionFunctions

  /** Of a session that brings more, the newest are kept. */
  private[python] val MostFunctions = 200

  final private class SessionEnd(val token: String, session: AnyRef, queue: ReferenceQueue[AnyRef])
      extends WeakReference[AnyRef](session, queue)

  private def paths(path: String): Seq[String] =
    path.split(File.pathSeparator).toSeq.filter(_.nonEmpty)
}

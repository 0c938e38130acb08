package org.apache.spark.sql.aqepilot.python

import java.io.File
import java.lang.ref.{ReferenceQueue, WeakReference}
import java.security.MessageDigest
import java.util.Map
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.Recent

/** A function that the driver's own Python brought: its pickle (empty for a text that names a module), where it
  * imports from, and its interpreter.
  */
final case class SessionFunction(pickled: Array[Byte], path: Seq[String], python: String)

/** The functions that each session's own Python brought, until the session is garbage. Who brings one holds the
  * gateway's secret, and so runs code here anyway; a text alone, which any client can set, brings none.
  *
  * A session is known by a token, a random text in its setting `spark.aqepilot.python.token`: what Spark copies of a
  * session (for a stream, for a cache) has the setting too, and nobody else.
  */
object SessionFunctions {

  final private class Ending(val token: String, session: AnyRef, queue: ReferenceQueue[AnyRef])
      extends WeakReference[AnyRef](session, queue)

  /** Of a session that brings more, the newest are kept. */
  private[python] val MostFunctions = 200

  private val known = new ConcurrentHashMap[String, Map[String, SessionFunction]]()
  private val endings = new ConcurrentHashMap[String, Ending]()
  private val garbage = new ReferenceQueue[AnyRef]
  private val changes = new AtomicLong

  private lazy val undertaker: Thread = {
    val thread = new Thread("aqepilot-python-sessions") {
      override def run(): Unit = while (true) garbage.remove() match {
        case ended: Ending if endings.remove(ended.token, ended) => end(ended.token)
        case _                                                   =>
      }
    }
    thread.setDaemon(true)
    thread.start()
    thread
  }

  /** Grows with every function that comes, and with every session that ends. */
  def version: Long = changes.get

  /** @param session
    *   whose end is the functions' end; null for the driver's end
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

  /** Of texts that name a module only. */
  def allow(token: String, session: AnyRef, text: String, path: String, python: String): Unit =
    PythonText.of(text) match {
      case Right(named: ImportedFunction) =>
        val function = SessionFunction(Array.emptyByteArray, paths(path), python)
        keep(token, session, named.text, function)
      case _ =>
    }

  def get(token: String, text: String): Option[SessionFunction] =
    Option(known.get(token)).flatMap(functions => Option(functions.get(text)))

  /** The interpreter of a session's own Python. */
  private[python] def python(token: String): Option[String] =
    Option(known.get(token)).flatMap { functions =>
      functions.values.toArray(Array.empty[SessionFunction]).map(_.python).find(_.nonEmpty)
    }

  /** How many sessions have brought functions and are not garbage yet. */
  private[python] def sessions: Int = known.size

  private def keep(
      token: String,
      session: AnyRef,
      text: String,
      function: SessionFunction
  ): Unit = {
    if (session != null) {
      undertaker
      endings.computeIfAbsent(token, new Ending(_, session, garbage))
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

  private def paths(path: String): Seq[String] =
    path.split(File.pathSeparator).toSeq.filter(_.nonEmpty)
}

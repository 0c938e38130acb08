package org.apache.spark.sql.aqepilot.python

import java.io.File
import java.security.MessageDigest
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

/** A function that the driver's own Python brought: its pickle (empty for a text that names a module), where it
  * imports from, and its interpreter.
  */
final case class SessionFunction(pickled: Array[Byte], path: Seq[String], python: String)

/** The functions that sessions of this driver may use. Who brings one holds the gateway's secret, and so runs
  * code here anyway; a text alone, which any client can set, brings none.
  */
object SessionFunctions {

  private val known = new ConcurrentHashMap[String, SessionFunction]()
  private val changes = new AtomicLong

  /** Grows with every function. */
  def version: Long = changes.get

  def register(name: String, pickled: Array[Byte], path: String, python: String): String = {
    val hash =
      MessageDigest.getInstance("SHA-256").digest(pickled).map(b => f"$b%02x").mkString
    val text = PythonText.pickled(name, hash)
    keep(text, SessionFunction(pickled, paths(path), python))
    text
  }

  /** Of texts that name a module only. */
  def allow(text: String, path: String, python: String): Unit = PythonText.of(text) match {
    case Right(named: ImportedFunction) =>
      keep(named.text, SessionFunction(Array.emptyByteArray, paths(path), python))
    case _ =>
  }

  def get(text: String): Option[SessionFunction] = Option(known.get(text))

  private def keep(text: String, function: SessionFunction): Unit = {
    known.put(text, function)
    changes.incrementAndGet()
  }

  private def paths(path: String): Seq[String] =
    path.split(File.pathSeparator).toSeq.filter(_.nonEmpty)
}

package org.apache.spark.sql.aqepilot

import java.util.concurrent.ConcurrentHashMap

import scala.util.control.ControlThrowable

import org.apache.spark.internal.Logging
import org.apache.spark.sql.aqepilot.log.DecisionLog

import io.aqepilot.decision.Reason

/** No fault of ours fails a query: whatever a rule throws, `LinkageError` on a vendor's Spark included, the
  * caller goes on with what it had; exhausted memory included, as plain Spark might have had enough. An
  * interrupt (a cancelled query) is not ours.
  *
  * @param count
  *   told what failed, each time
  */
class FailOpen(count: String => Unit) extends Logging {

  private val logged = ConcurrentHashMap.newKeySet[String]()

  def apply[T](what: String, otherwise: => T)(body: => T): T = recover(what)(_ => otherwise)(body)

  /** The same, for a caller that wants to know the fault. */
  def recover[T](what: String)(otherwise: Throwable => T)(body: => T): T =
    try body
    catch {
      case e: InterruptedException                              => throw e
      case e: ControlThrowable                                  => throw e
      case e: Throwable if Thread.currentThread().isInterrupted => throw e
      case e: Throwable                                         =>
        try report(what, e)
        catch { case _: Throwable if !Thread.currentThread().isInterrupted => }
        otherwise(e)
    }

  /** One line for each kind of fault, with its stack trace at debug level. */
  private def report(what: String, e: Throwable): Unit = {
    count(what)
    if (logged.size < 1000 && logged.add(what + e.getClass.getName)) {
      logWarning(
        s"aqepilot: $what failed and was left to Spark (INTERNAL_ERROR): ${FailOpen.short(e)}"
      )
    }
    logDebug(s"aqepilot: $what", e)
  }

  /** Counts a fault of ours that was found before it did harm, and logs it once. */
  def fault(what: String, message: String): Unit = {
    count(what)
    warnOnce(s"$what was left to Spark (${Reason.InvalidRewrite.code}): $message")
  }

  /** Logs a warning once in the life of the driver. */
  def warnOnce(message: String): Unit =
    if (logged.size < 1000 && logged.add(message)) logWarning(s"aqepilot: $message")
}

/** Counts in the log of the running driver. */
object FailOpen extends FailOpen(what => DecisionLog.getActive.foreach(_.failed(what))) {

  /** The message of a fault, short enough for a record. */
  def short(e: Throwable): String =
    s"${e.getClass.getSimpleName}: ${Option(e.getMessage).getOrElse("").linesIterator.take(1).mkString}"
      .take(300)
}

package org.apache.spark.sql.aqepilot

import scala.util.control.ControlThrowable

import org.apache.spark.sql.aqepilot.log.DecisionLog

import org.slf4j.LoggerFactory

import io.aqepilot.decision.Reason

/** No fault of ours fails a query: whatever a rule throws, `LinkageError` on a vendor's Spark included, the
  * caller goes on with what it had; exhausted memory included, as plain Spark might have had enough. An
  * interrupt (a cancelled query) is not ours. What it is made of is not Spark's, so that it works on any.
  *
  * @param count
  *   told what failed, each time
  */
class FailOpen(count: String => Unit) {

  private val log = LoggerFactory.getLogger("org.apache.spark.sql.aqepilot.FailOpen")
  private val logged = Recent.map[String, java.lang.Boolean](1000)

  def apply[T](what: String, otherwise: => T)(body: => T): T = recover(what)(_ => otherwise)(body)

  /** The same, for a caller that wants to know the fault. */
  def recover[T](what: String)(otherwise: Throwable => T)(body: => T): T =
    try body
    catch {
      case e: Throwable if isNotOurs(e) => throw e
      case e: Throwable                 =>
        try report(what, e)
        catch { case _: Throwable if !Thread.currentThread().isInterrupted => }
        otherwise(e)
    }

  // A `case e: ControlThrowable => throw e` fails the verification of this class on a Spark of another Scala:
  // 2.12 has a trait where 2.13 has a class.
  private def isNotOurs(e: Throwable): Boolean =
    e.isInstanceOf[InterruptedException] || e.isInstanceOf[ControlThrowable] ||
      Thread.currentThread().isInterrupted

  /** One line for each kind of fault, with its stack trace at debug level. */
  private def report(what: String, e: Throwable): Unit = {
    count(what)
    if (isNew(what + e.getClass.getName)) {
      log.warn(
        s"aqepilot: $what failed and was left to Spark (INTERNAL_ERROR): ${FailOpen.short(e)}"
      )
    }
    log.debug(s"aqepilot: $what", e)
  }

  /** Counts a fault of ours that was found before it did harm, and logs it once. */
  def fault(what: String, message: String): Unit = {
    count(what)
    warnOnce(s"$what was left to Spark (${Reason.InvalidRewrite.code}): $message")
  }

  /** Logs a warning once, unless a thousand others were logged since. */
  def warnOnce(message: String): Unit = {
    val shown = message.take(MaxMessageChars)
    if (isNew(shown)) log.warn(s"aqepilot: $shown")
  }

  def info(message: String): Unit = log.info(s"aqepilot: $message")

  private def isNew(message: String): Boolean = logged.put(message, true) == null

  private val MaxMessageChars = 5000
}

/** Counts in the log of the running driver. */
object FailOpen extends FailOpen(what => DecisionLog.getActive.foreach(_.failed(what))) {

  /** The message of a fault, short enough for a record. */
  def short(e: Throwable): String =
    s"${e.getClass.getSimpleName}: ${Option(e.getMessage).getOrElse("").linesIterator.take(1).mkString}"
      .take(300)
}

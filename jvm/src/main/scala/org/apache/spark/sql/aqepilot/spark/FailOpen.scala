package org.apache.spark.sql.aqepilot.spark

import java.util.{HashMap, Map}

import scala.util.control.ControlThrowable

import org.apache.spark.sql.aqepilot.reasons.{Problem, Reason}
import org.slf4j.{LoggerFactory, MDC}

/** No fault of ours fails a query: whatever a rule throws, `LinkageError` on a vendor's Spark included, the
  * caller goes on with what it had; exhausted memory included, as plain Spark might have had enough. An
  * interrupt (a cancelled query) is not ours. What it is made of is not Spark's, and no collection of Scala's, so that
  * it works on any.
  *
  * @param count
  *   called each time, with the name of the part that failed
  */
class FailOpen(count: String => Unit) {

  private val log = LoggerFactory.getLogger("org.apache.spark.sql.aqepilot")
  private val logged = Recent.set[String](1000)

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
      val reason = Reason.InternalError.code
      warn(
        s"$what failed and was left to Spark ($reason): ${FailOpen.short(e)}",
        context(reason, what)
      )
    }
    log.debug(s"aqepilot: $what", e)
  }

  /** Counts a fault of ours that was found before it did harm, and logs it once. */
  def fault(what: String, message: String): Unit = {
    count(what)
    val reason = Reason.InvalidRewrite.code
    warnOnce(s"$what was left to Spark ($reason): $message", context(reason, what))
  }

  def warnOnce(message: String): Unit = warnOnce(message, new HashMap)

  /** Logs a warning once, unless a thousand others were logged since.
    *
    * @param context
    *   what structured logs have beside the message, by name
    */
  def warnOnce(message: String, context: Map[String, String]): Unit =
    if (isNew(message.take(MaxMessageChars))) warn(message, context)

  /** Logs a warning each time. */
  def warn(message: String, context: Map[String, String]): Unit = {
    addWhereItRuns(context)
    // Spark 4's structured logs have what SLF4J's context has; other layouts do not show it.
    val before = MDC.getCopyOfContextMap
    context.forEach((key, value) => MDC.put(key, value))
    try log.warn(s"aqepilot: ${message.take(MaxMessageChars)}")
    finally MDC.setContextMap(if (before == null) new HashMap else before)
  }

  def problem(p: Problem): Unit = warnOnce(s"${p.code}: ${p.message}", contextOf(p))

  protected def contextOf(p: Problem): Map[String, String] = {
    val fields = context(p.code, p.point.orNull)
    if (p.policy.isDefined) fields.put("policy", p.policy.get)
    fields
  }

  /** @param point
    *   null where it is about none
    */
  protected def context(reason: String, point: String): Map[String, String] = {
    val fields = new HashMap[String, String]
    fields.put("reason", reason)
    if (point != null) fields.put("point", point)
    fields
  }

  protected def addWhereItRuns(context: Map[String, String]): Unit = ()

  def info(message: String): Unit = log.info(s"aqepilot: $message")

  /** An application has ended: what was logged once is logged once more in the next. */
  def forget(): Unit = logged.clear()

  private def isNew(message: String): Boolean = logged.add(message)

  private val MaxMessageChars = 5000
}

/** Counts in the record of the running application. */
object FailOpen extends FailOpen(Record.failed(_)) {

  /** Logs it each time that it arises. */
  def arisen(p: Problem): Unit = warn(s"${p.code}: ${p.message}", contextOf(p))

  override protected def addWhereItRuns(context: Map[String, String]): Unit =
    try Record.addRun(context)
    catch { case _: Throwable if !Thread.currentThread().isInterrupted => }

  /** The message of a fault, short enough for a record. */
  def short(e: Throwable): String =
    s"${e.getClass.getSimpleName}: ${Option(e.getMessage).getOrElse("").linesIterator.take(1).mkString}"
      .take(300)
}

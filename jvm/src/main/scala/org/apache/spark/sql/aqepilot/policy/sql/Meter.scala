package org.apache.spark.sql.aqepilot.policy.sql

import java.lang.management.ManagementFactory

import scala.util.control.NoStackTrace

import org.apache.spark.sql.aqepilot.reasons.Reason

/** The time that an ask may still take on this thread: processor time, so that a busy machine takes nothing from it. */
object AskBudget {

  /** Where nobody sets another. */
  val DefaultNanos: Long = 1000L * 1000 * 1000

  private val clock = ManagementFactory.getThreadMXBean
  private val hasThreadTime = clock.isCurrentThreadCpuTimeSupported && clock.isThreadCpuTimeEnabled

  /** @param end
    *   in the thread's processor time
    */
  final private case class Budget(nanos: Long, end: Long)

  private val current = new ThreadLocal[Budget]

  /** Runs a body whose evaluations may take so long altogether. */
  def within[T](nanos: Long)(body: => T): T = {
    val outer = current.get()
    current.set(Budget(nanos, now() + nanos))
    try body
    finally if (outer == null) current.remove() else current.set(outer)
  }

  private[policy] def end(): Long = {
    val budget = current.get()
    if (budget == null) now() + DefaultNanos else budget.end
  }

  /** Whether half of the thread's budget or more was spent since a time of [[now]]. */
  private[policy] def isSpentSince(begun: Long): Boolean = {
    val budget = current.get()
    now() - begun >= (if (budget == null) DefaultNanos else budget.nanos) / 2
  }

  /** The processor time of this thread in nanoseconds; the time where the JVM does not measure it. */
  private[policy] def now(): Long =
    if (hasThreadTime) clock.getCurrentThreadCpuTime else System.nanoTime()
}

/** Ends an evaluation that costs more than it may. */
final private[policy] class TooCostly(val reason: Reason, message: String)
    extends RuntimeException(message)
    with NoStackTrace

private[policy] object TooCostly {

  /** Spark's expressions wrap what is thrown below them. */
  def in(e: Throwable): Option[TooCostly] =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(20).collectFirst {
      case costly: TooCostly => costly
    }
}

/** Counts what one evaluation of an expression costs, and ends the evaluation when that is too much.
  *
  * An expression that is run by one thread at a time has one.
  */
final private[policy] class Meter extends Serializable {
  import Meter._

  @transient private var end = 0L
  @transient private var bytes = 0L
  @transient private var steps = 0L
  @transient private var nextLookSteps = 0L
  @transient private var nextLookNanos = 0L

  /** Begins an evaluation. One of few steps is not ended: if it takes long, it loads classes. */
  def start(): Unit = {
    end = AskBudget.end()
    bytes = 0L
    steps = 0L
    nextLookSteps = FewSteps
    nextLookNanos = System.nanoTime() + LookNanos
  }

  /** Something is done once more: a lambda is called, some characters are read.
    *
    * @throws TooCostly if the ask's time is over, or the thread was interrupted
    */
  def step(): Unit = take(1)

  /** A function has made a value.
    *
    * @throws TooCostly if the value is too large, or all values of this evaluation together
    */
  def charge(value: Any): Unit = {
    val size = ValueSize.bytes(value, MaxValueBytes)
    if (size > 0) {
      bytes += size
      if (size > MaxValueBytes) tooLarge("a value", MaxValueBytes)
      if (bytes > MaxBytes) tooLarge("values", MaxBytes)
      take(size / BytesOfStep)
    }
  }

  private def take(more: Long): Unit = {
    steps += more
    if (steps >= nextLookSteps) {
      nextLookSteps = steps + StepsUnlooked
      if (System.nanoTime() - nextLookNanos > 0) look()
    }
  }

  // System.nanoTime takes some 20 nanoseconds, a thread's processor time a microsecond.
  private def look(): Unit = {
    nextLookNanos = System.nanoTime() + LookNanos
    if (AskBudget.now() > end)
      throw new TooCostly(
        Reason.EvaluationDeadline,
        "It takes longer than spark.aqepilot.ask.deadline allows."
      )
    if (Thread.currentThread().isInterrupted)
      throw new TooCostly(Reason.EvaluationFailed, "The query's thread was interrupted.")
  }

  private def tooLarge(what: String, allowed: Long) =
    throw new TooCostly(
      Reason.EvaluationTooLarge,
      s"It takes too much memory: $what of more than the $allowed bytes that are allowed."
    )
}

private[policy] object Meter {
  private val FewSteps = 256L
  private val StepsUnlooked = 16L
  private val BytesOfStep = 256L
  private val LookNanos = 1000L * 1000

  /** Of one value: an array of a million longs has 8 MiB. */
  val MaxValueBytes: Long = 16L << 20

  /** Of all values of an evaluation. */
  val MaxBytes: Long = 128L << 20
}

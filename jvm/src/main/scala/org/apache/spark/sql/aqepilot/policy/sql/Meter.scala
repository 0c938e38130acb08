package org.apache.spark.sql.aqepilot.policy.sql

import java.lang.management.ManagementFactory

import scala.util.control.NoStackTrace

import org.apache.spark.sql.aqepilot.reasons.Reason

/** What an ask may still cost on this thread: processor time, so that a busy machine takes nothing from it. */
object AskBudget {

  /** For who sets none: `aqepilot_check`, the constant parts of a text. */
  val DefaultNanos: Long = 1000L * 1000 * 1000

  private val clock = ManagementFactory.getThreadMXBean
  private val isTold = clock.isCurrentThreadCpuTimeSupported && clock.isThreadCpuTimeEnabled

  /** @param end
    *   in the thread's processor time
    */
  final private case class Budget(nanos: Long, end: Long)

  private val ofThread = new ThreadLocal[Budget]

  /** Runs what may take so long altogether. */
  def within[T](nanos: Long)(body: => T): T = {
    val outer = ofThread.get()
    ofThread.set(Budget(nanos, now() + nanos))
    try body
    finally if (outer == null) ofThread.remove() else ofThread.set(outer)
  }

  private[policy] def end(): Long = {
    val budget = ofThread.get()
    if (budget == null) now() + DefaultNanos else budget.end
  }

  /** Whether who began at a time of [[now]] has taken half of the thread's budget by itself: else others have spent it.
    */
  private[policy] def isSpentSince(begun: Long): Boolean = {
    val budget = ofThread.get()
    now() - begun >= (if (budget == null) DefaultNanos else budget.nanos) / 2
  }

  /** The processor time of this thread, where the JVM tells it, or else the time. */
  private[policy] def now(): Long =
    if (isTold) clock.getCurrentThreadCpuTime else System.nanoTime()
}

/** An evaluation costs more than it may. */
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

/** Counts what one evaluation of an expression costs, and ends it when that is too much.
  *
  * An expression that is run by one thread at a time has one.
  */
final private[policy] class Meter extends Serializable {
  import Meter._

  @transient private var end = 0L
  @transient private var bytes = 0L
  @transient private var unlooked = 0L

  def start(): Unit = {
    end = AskBudget.end()
    bytes = 0L
    unlooked = 0L
  }

  /** One more part is evaluated, or some hundred characters are looked at. */
  def step(): Unit = work(StepWork)

  /** A part gave this value.
    *
    * @throws TooCostly
    */
  def charge(value: Any): Unit = {
    val size = ValueSize.of(value, MaxValueBytes)
    if (size > MaxValueBytes) tooLarge("a value", MaxValueBytes)
    hold(size)
    work(size / BytesOfWork)
  }

  /** Something of this size is made, and kept for a while.
    *
    * @throws TooCostly
    */
  def hold(size: Long): Unit = {
    bytes += size
    if (bytes > MaxBytes) tooLarge("values", MaxBytes)
  }

  /** A function has been given another argument.
    *
    * @param all
    *   bytes of its arguments so far
    * @throws TooCostly
    */
  def give(size: Long, all: Long): Unit = {
    if (all > MaxArgumentBytes) tooLarge("the arguments of one function", MaxArgumentBytes)
    work(size / BytesOfWork)
  }

  /** Each part of one value is compared with each of another.
    *
    * @throws TooCostly
    */
  def compare(one: Long, other: Long): Unit =
    if (one.toDouble * other > MaxComparisons)
      tooSlow(s"It compares each of $one parts with each of $other.")
    else work(one * other / ComparisonsOfWork)

  /** @throws TooCostly */
  def tooSlow(message: String): Nothing = throw new TooCostly(Reason.EvaluationDeadline, message)

  /** @throws TooCostly */
  def tooLarge(what: String, allowed: Long = MaxValueBytes): Nothing =
    throw new TooCostly(
      Reason.EvaluationTooLarge,
      s"It takes too much memory: $what of more than the $allowed bytes that are allowed."
    )

  private def work(units: Long): Unit = {
    unlooked += units
    if (unlooked >= WorkUnlooked) {
      unlooked = 0
      look()
    }
  }

  private def look(): Unit =
    if (AskBudget.now() > end) tooSlow("It takes longer than spark.aqepilot.ask.deadline allows.")
    else if (Thread.currentThread().isInterrupted)
      throw new TooCostly(Reason.EvaluationFailed, "The query's thread was interrupted.")
}

private[policy] object Meter {
  // A unit is a few nanoseconds. To look at the clock takes longer than a step.
  private val WorkUnlooked = 4096L
  private val StepWork = 16L
  private val BytesOfWork = 16L
  private val ComparisonsOfWork = 4L
  private val MaxComparisons = 4L << 20

  /** Of one value: an array of a million longs has 8 MiB. */
  val MaxValueBytes: Long = 16L << 20

  /** Of the arguments of one function, which makes something of them in one go. */
  val MaxArgumentBytes: Long = 2 * MaxValueBytes

  /** Of all values of an evaluation. */
  val MaxBytes: Long = 128L << 20
}

package io.aqepilot.policy

import java.lang.management.ManagementFactory

import scala.util.control.NoStackTrace

import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.unsafe.types.UTF8String

import io.aqepilot.decision.Reason

/** What an ask may still cost on this thread: processor time, so that a busy machine takes nothing from it. */
object AskBudget {

  /** For who sets none: `aqepilot_check`, the constant parts of a text. */
  val DefaultNanos: Long = 1000L * 1000 * 1000

  private val clock = ManagementFactory.getThreadMXBean
  private val isTold = clock.isCurrentThreadCpuTimeSupported && clock.isThreadCpuTimeEnabled

  // The end, in the thread's processor time.
  private val ofThread = new ThreadLocal[java.lang.Long]

  /** Runs what may take so long altogether. */
  def within[T](nanos: Long)(body: => T): T = {
    val outer = ofThread.get()
    ofThread.set(now() + nanos)
    try body
    finally if (outer == null) ofThread.remove() else ofThread.set(outer)
  }

  private[policy] def end(): Long = {
    val end = ofThread.get()
    if (end == null) now() + DefaultNanos else end
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
  @transient private var steps = 0

  def start(): Unit = {
    end = AskBudget.end()
    bytes = 0L
    steps = 0
  }

  /** One more part is evaluated, or some hundred characters are looked at. */
  def step(): Unit = {
    steps += 1
    if ((steps & StepsUnlooked) == 0) look()
  }

  /** A part gave this value.
    *
    * @throws TooCostly
    */
  def charge(value: Any): Unit = {
    val size = sizeOf(value)
    if (size > MaxValueBytes) tooLarge(s"a value of $size bytes", MaxValueBytes)
    bytes += size
    if (bytes > MaxBytes) tooLarge(s"values of $bytes bytes", MaxBytes)
    if (size > LargeBytes) look()
  }

  /** Two values are compared part by part. */
  def compare(one: Any, other: Any): Unit =
    if (parts(one) * parts(other) > MaxComparisons)
      throw new TooCostly(
        Reason.EvaluationDeadline,
        s"It compares each of ${parts(one)} parts with each of ${parts(other)}."
      )

  private def look(): Unit =
    if (AskBudget.now() > end)
      throw new TooCostly(
        Reason.EvaluationDeadline,
        "It takes longer than spark.aqepilot.ask.deadline allows."
      )
    else if (Thread.currentThread().isInterrupted)
      throw new TooCostly(Reason.EvaluationFailed, "The query's thread was interrupted.")

  private def tooLarge(what: String, allowed: Long) =
    throw new TooCostly(
      Reason.EvaluationTooLarge,
      s"It takes too much memory: $what, where $allowed are allowed."
    )
}

private[policy] object Meter {
  private val StepsUnlooked = 255
  private val LargeBytes = 64L << 10
  private val MaxComparisons = 4L << 20

  /** Of one value: an array of a million longs has 8 MiB. */
  val MaxValueBytes: Long = 16L << 20

  /** Of all values of an evaluation. */
  val MaxBytes: Long = 128L << 20

  private def sizeOf(value: Any): Long = value match {
    case s: UTF8String  => s.numBytes.toLong
    case a: ArrayData   => a.numElements() * 8L
    case m: MapData     => m.numElements() * 16L
    case b: Array[Byte] => b.length.toLong
    case _              => 0L
  }

  private def parts(value: Any): Long = value match {
    case s: UTF8String => s.numBytes.toLong
    case a: ArrayData  => a.numElements().toLong
    case _             => 1L
  }
}

package org.apache.spark.sql.aqepilot.policy.sql

import java.lang.management.ManagementFactory
import java.util.concurrent.{ExecutionException, FutureTask, Semaphore, TimeUnit, TimeoutException}

import org.apache.spark.sql.aqepilot.policy.PolicyError

/** Runs a compilation on a thread of its own.
  *
  * Parser and analyser recurse with the text's nesting, and the caller's stack may be nearly full. The thread has a
  * large, empty stack, and no thread-local of an analysis under way (`AnalysisContext`).
  *
  * There are never more than [[MaxThreads]], also of those whose callers no longer wait. A caller that finds no thread
  * free waits for two seconds. For ten seconds after that no caller waits: another session's text that compiles for
  * long does not hold queries.
  */
private[policy] object CompileThread {
  private val StackBytes = 64L << 20 // reserved; memory is used as far as the text is nested
  private val TimeoutSeconds = 60L
  private val CpuSeconds = 10L
  private val PollMillis = 200L
  private val TurnNanos = TimeUnit.SECONDS.toNanos(2)
  private val BusyNanos = TimeUnit.SECONDS.toNanos(10)

  val MaxThreads = 4

  private val free = new Semaphore(MaxThreads)
  private val clock = ManagementFactory.getThreadMXBean
  @volatile private var busySince = Option.empty[Long]

  def run[T](
      compile: => Either[PolicyError, T],
      timeoutSeconds: Long = TimeoutSeconds,
      cpuSeconds: Long = CpuSeconds
  ): Either[PolicyError, T] =
    if (!hasTurn)
      refused(
        PolicyError.CompilerBusy,
        s"$MaxThreads other texts are being compiled: it is tried again."
      )
    else {
      val task = new FutureTask[Either[PolicyError, T]](() => compile)
      val thread = new Thread(
        null,
        () =>
          try task.run()
          finally free.release(),
        "aqepilot-compile",
        StackBytes
      )
      thread.setDaemon(true)
      try thread.start()
      catch {
        case e: Throwable =>
          free.release()
          throw e
      }
      val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(timeoutSeconds)
      finished(task, thread, end, TimeUnit.SECONDS.toNanos(cpuSeconds))
        .getOrElse {
          thread.interrupt()
          val most = s"${math.min(cpuSeconds, timeoutSeconds)} seconds"
          refused(
            PolicyError.TooComplex,
            s"Compiling took more than $most: write a simpler text."
          )
        }
    }

  private def hasTurn: Boolean = {
    val isBusy = busySince.exists(System.nanoTime() - _ < BusyNanos)
    val isFree =
      if (isBusy) free.tryAcquire() else free.tryAcquire(TurnNanos, TimeUnit.NANOSECONDS)
    if (isFree) busySince = None
    else if (!isBusy) busySince = Some(System.nanoTime())
    isFree
  }

  /** None when it takes too long, in processor time or, on a busy machine, altogether. */
  private def finished[T](
      task: FutureTask[Either[PolicyError, T]],
      thread: Thread,
      end: Long,
      mostCpuNanos: Long
  ): Option[Either[PolicyError, T]] = {
    var outcome = Option.empty[Either[PolicyError, T]]
    var isLate = false
    while (outcome.isEmpty && !isLate)
      try outcome = Some(task.get(PollMillis, TimeUnit.MILLISECONDS))
      catch {
        case _: TimeoutException =>
          isLate = System.nanoTime() > end || cpuNanos(thread) > mostCpuNanos
        case e: ExecutionException => throw e.getCause
      }
    outcome
  }

  private def cpuNanos(thread: Thread): Long =
    if (clock.isThreadCpuTimeSupported && clock.isThreadCpuTimeEnabled)
      clock.getThreadCpuTime(thread.getId)
    else 0L

  private def refused(code: String, message: String) =
    Left(PolicyError(code, message, None, None, Nil))
}

package org.apache.spark.sql.aqepilot.record

import java.util.concurrent.atomic.{AtomicBoolean, AtomicInteger}
import java.util.concurrent.{ConcurrentLinkedQueue, TimeUnit}

import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.util.ThreadUtils

/** Does what no query waits for in a thread of its own, in the order in which it came, all of some
  * milliseconds together: to wake a thread for each piece takes the waker longer than most pieces do.
  */
final private[record] class Later(threadName: String) {
  import Later._

  private val waiting = new ConcurrentLinkedQueue[() => Unit]
  private val size = new AtomicInteger
  private val isScheduled = new AtomicBoolean
  private val thread = ThreadUtils.newDaemonSingleThreadScheduledExecutor(threadName)
  thread.execute(() => Sessions.forget())

  /** @param work
    *   throws nothing
    */
  def apply(work: => Unit): Unit = {
    waiting.add(() => work)
    if (size.incrementAndGet() > MaxWaiting || thread.isShutdown) finish()
    else if (isScheduled.compareAndSet(false, true))
      thread.schedule((() => finish()): Runnable, Millis, TimeUnit.MILLISECONDS)
  }

  /** Returns when all that came before is done. */
  def finish(): Unit = synchronized {
    isScheduled.set(false)
    Iterator.continually(waiting.poll()).takeWhile(_ != null).foreach { work =>
      size.decrementAndGet()
      work()
    }
  }

  /** Finishes; what comes from now on is done by who brings it. */
  def close(): Unit = {
    thread.shutdown()
    finish()
  }
}

private[record] object Later {
  val Millis = 20L
  val MaxWaiting = 1000
}

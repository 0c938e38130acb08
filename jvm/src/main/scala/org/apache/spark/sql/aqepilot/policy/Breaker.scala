package org.apache.spark.sql.aqepilot.policy

/** Keeps from asking what fails again and again (Nygard, Release It!: circuit breaker).
  *
  * Closed until `failures` in a row; then open for a time; then half-open: one is let through, and closes it or
  * opens it for twice as long, up to [[Breaker.MostDoublings]] times.
  *
  * @param now
  *   nanoseconds
  */
final class Breaker(failures: Int, openNanos: Long, now: () => Long = () => System.nanoTime()) {

  private var inARow = 0
  private var doublings = 0
  private var openSince = 0L
  private var isOpen = false
  private var isTrying = false

  /** Whether to ask now; who is told to has to say how it went. */
  def admits(): Boolean = synchronized {
    if (!isOpen) true
    else if (isTrying || remaining > 0) false
    else {
      isTrying = true
      true
    }
  }

  def succeeded(): Unit = synchronized {
    inARow = 0
    doublings = 0
    isOpen = false
    isTrying = false
  }

  /** @return whether this opened it */
  def failed(): Boolean = synchronized {
    inARow += 1
    if (isTrying || (!isOpen && inARow >= failures)) {
      if (isTrying) doublings = math.min(Breaker.MostDoublings, doublings + 1)
      isTrying = false
      isOpen = true
      openSince = now()
      true
    } else false
  }

  /** It was admitted, and never asked. */
  def unasked(): Unit = synchronized { isTrying = false }

  /** Nanoseconds for which it stays open; None when it is closed or tries again. */
  def openFor: Option[Long] = synchronized {
    if (isOpen && !isTrying && remaining > 0) Some(remaining) else None
  }

  private def remaining: Long = openSince + (openNanos << doublings) - now()
}

object Breaker {
  val MostDoublings = 4
}

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

  /** Asks, if that may be done now; None where it may not. One that throws counts as never asked.
    *
    * @param opened
    *   done where a failure opens it
    * @param body
    *   gives the answer, and how the ask went
    */
  def ask[T](opened: => Unit = ())(body: => (T, Breaker.Went)): Option[T] =
    if (!admits()) None
    else {
      var went: Breaker.Went = Breaker.Unasked
      try {
        val (answer, how) = body
        went = how
        Some(answer)
      } finally went match {
          case Breaker.Succeeded => succeeded()
          case Breaker.Failed    => if (failed()) opened
          case Breaker.Unasked   => unasked()
        }
    }

  /** Whether to ask now: then one of the three that follow has to be called. */
  private[policy] def admits(): Boolean = synchronized {
    if (!isOpen) true
    else if (isTrying || remaining > 0) false
    else {
      isTrying = true
      true
    }
  }

  private[policy] def succeeded(): Unit = synchronized {
    inARow = 0
    doublings = 0
    isOpen = false
    isTrying = false
  }

  /** @return whether this opened it */
  private[policy] def failed(): Boolean = synchronized {
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
  private[policy] def unasked(): Unit = synchronized { isTrying = false }

  /** Nanoseconds for which it stays open; None when it is closed or tries again. */
  def openFor: Option[Long] = synchronized {
    if (isOpen && !isTrying && remaining > 0) Some(remaining) else None
  }

  private def remaining: Long = openSince + (openNanos << doublings) - now()
}

object Breaker {

  /** How an ask went. */
  sealed trait Went
  case object Succeeded extends Went
  case object Failed extends Went

  /** Something else was at fault, or nothing. */
  case object Unasked extends Went

  val MostDoublings = 4
}

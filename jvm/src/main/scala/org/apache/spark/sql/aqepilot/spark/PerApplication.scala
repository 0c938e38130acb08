package org.apache.spark.sql.aqepilot.spark

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}

/** What is worked out once for an application, and ends with its SparkContext: a driver may have one after the other.
  *
  * @param make
  *   may give something that is closed at the end, also within an option
  */
final private[aqepilot] class PerApplication[T](make: SparkContext => T) {
  import PerApplication._

  def of(sc: SparkContext): T = {
    val values = stateOf(sc).values
    val known = values.get(this)
    val made = if (known != null) known else values.computeIfAbsent(this, _ => new Made(make(sc)))
    made.value.asInstanceOf[T]
  }
}

private[aqepilot] object PerApplication {

  /** Of Spark's listener bus. */
  val Queue = "aqepilot"

  // Made outside of the map and its locks, as one may ask for another.
  final private class Made(make: => Any) extends AutoCloseable {
    @volatile private var isMade = false

    lazy val value: Any = {
      val made = make
      isMade = true
      made
    }

    override def close(): Unit = if (isMade) value match {
      case Some(open: AutoCloseable) => open.close()
      case open: AutoCloseable       => open.close()
      case _                         =>
    }
  }

  final private class State(val sc: SparkContext) extends SparkListener {
    val values = new ConcurrentHashMap[PerApplication[_], Made]

    override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
      FailOpen("application_end", ())(forget(this))
  }

  /** One driver has one SparkContext at a time. */
  @volatile private var current: Option[State] = None

  private def stateOf(sc: SparkContext): State = current match {
    case Some(state) if state.sc eq sc => state
    case _                             => begun(sc)
  }

  /** Of a context that has ended nothing is kept. */
  private def begun(sc: SparkContext): State = synchronized {
    current.filter(_.sc eq sc).getOrElse {
      val state = new State(sc)
      if (!sc.isStopped) {
        current.foreach(forget)
        current = Some(state)
        // Behind what the record makes of the last queries.
        FailOpen("application", ())(WithoutSession(sc.listenerBus.addToQueue(state, Queue)))
        // Its end may have come before the listener.
        if (sc.isStopped) forget(state)
      }
      state
    }
  }

  private def forget(state: State): Unit = {
    synchronized(if (current.exists(_ eq state)) current = None)
    FailOpen.forget()
    val made = state.values.values.toArray(Array.empty[Made])
    state.values.clear()
    made.foreach(open => FailOpen("close", ())(open.close()))
  }
}

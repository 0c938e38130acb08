package org.apache.spark.sql.aqepilot.spark

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}

/** One application: all that is worked out for it ends with its SparkContext. A driver may have one after the other. */
final private[aqepilot] class Application private (val sc: SparkContext) extends SparkListener {
  import Application._

  private val values = new ConcurrentHashMap[Value[_], Made]

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
    FailOpen("application_end", ())(forget(this))
}

private[aqepilot] object Application {

  /** A value of each application, made when it is read first.
    *
    * @param make
    *   may give something that is closed at the end, also within an option
    */
  final class Value[T](make: SparkContext => T) {

    def of(sc: SparkContext): T = {
      val values = current(sc).values
      val known = values.get(this)
      val made = if (known != null) known else values.computeIfAbsent(this, _ => new Made(make(sc)))
      made.value.asInstanceOf[T]
    }

    /** That of the running application, if it has been made. */
    def ofActive: Option[T] = for {
      sc <- SparkContext.getActive
      application <- running if application.sc eq sc
      made <- Option(application.values.get(this))
    } yield made.value.asInstanceOf[T]
  }

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

  /** One driver has one SparkContext at a time. */
  @volatile private var running: Option[Application] = None

  private def current(sc: SparkContext): Application = running match {
    case Some(application) if application.sc eq sc => application
    case _                                         => begun(sc)
  }

  /** Of a context that has ended nothing is kept. */
  private def begun(sc: SparkContext): Application = synchronized {
    running.filter(_.sc eq sc).getOrElse {
      val application = new Application(sc)
      if (!sc.isStopped) {
        running.foreach(forget)
        running = Some(application)
        // Behind what the record makes of the last queries.
        FailOpen("application", ())(WithoutSession(sc.listenerBus.addToQueue(application, Queue)))
        // Its end may have come before the listener.
        if (sc.isStopped) forget(application)
      }
      application
    }
  }

  private def forget(application: Application): Unit = {
    synchronized(if (running.exists(_ eq application)) running = None)
    FailOpen.forget()
    val made = application.values.values.toArray(Array.empty[Made])
    application.values.clear()
    made.foreach(open => FailOpen("close", ())(open.close()))
  }
}

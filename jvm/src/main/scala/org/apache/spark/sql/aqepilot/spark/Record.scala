package org.apache.spark.sql.aqepilot.spark

import java.util.Map

import org.apache.spark.SparkContext

import io.aqepilot.log.{AqePilotControl, AqePilotExperiment}

/** The record of an application, as what lies beneath it sees it. */
trait Record {

  /** Counts a fault of ours. */
  def failed(what: String): Unit

  def control(e: AqePilotControl): Unit

  def experiment(e: AqePilotExperiment): Unit

  /** Does what no query waits for, in the order in which it came. */
  def later(work: => Unit): Unit

  /** A figure that is read when the metrics are. */
  def observe(name: String)(read: => Long): Unit
}

object Record {

  /** The record and the run of each application, once there is one. */
  private[aqepilot] trait Source {
    def of(sc: SparkContext): Record

    /** Adds the job and the run to the context of a log line. */
    def addRun(sc: SparkContext, context: Map[String, String]): Unit
  }

  @volatile private[aqepilot] var source: Source = Nowhere

  def of(sc: SparkContext): Record = source.of(sc)

  private[spark] def failed(what: String): Unit =
    SparkContext.getActive.foreach(of(_).failed(what))

  private[spark] def addRun(context: Map[String, String]): Unit =
    SparkContext.getActive.foreach(source.addRun(_, context))

  private object Nowhere extends Source {
    override def of(sc: SparkContext): Record = Nothing
    override def addRun(sc: SparkContext, context: Map[String, String]): Unit = ()
  }

  private object Nothing extends Record {
    override def failed(what: String): Unit = ()
    override def control(e: AqePilotControl): Unit = ()
    override def experiment(e: AqePilotExperiment): Unit = ()
    override def later(work: => Unit): Unit = work
    override def observe(name: String)(read: => Long): Unit = ()
  }
}

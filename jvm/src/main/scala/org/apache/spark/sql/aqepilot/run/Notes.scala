package org.apache.spark.sql.aqepilot.run

import org.apache.spark.SparkContext

import io.aqepilot.log.{AqePilotControl, AqePilotExperiment}

/** Where a driver notes what happens beside its decisions. */
trait Notes {
  def control(e: AqePilotControl): Unit
  def experiment(e: AqePilotExperiment): Unit

  /** A figure that is read when the metrics are. */
  def observe(name: String)(read: => Long): Unit
}

object Notes {

  /** The record of each driver, when there is one. */
  @volatile private[aqepilot] var of: SparkContext => Notes = (_: SparkContext) => Unnoted

  private object Unnoted extends Notes {
    override def control(e: AqePilotControl): Unit = ()
    override def experiment(e: AqePilotExperiment): Unit = ()
    override def observe(name: String)(read: => Long): Unit = ()
  }
}

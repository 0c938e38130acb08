package org.apache.spark.sql.aqepilot.ui

import scala.collection.immutable
import scala.util.Properties

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.sql.aqepilot.decision.Health
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.SparkUI
import org.slf4j.LoggerFactory

/** What a history server asks when it opens an application, not when it lists them. A service: `META-INF/services`.
  *
  * Where a history server has the jar of another Scala, this keeps applications without our events from harm. Of those
  * with some, Spark cannot load the events' classes.
  */
final private[ui] class HistoryServerPlugin extends AppHistoryServerPlugin with InAnyScala {

  override def createListeners(
      conf: SparkConf,
      store: ElementTrackingStore
  ): immutable.Seq[SparkListener] =
    if (fits) FailOpen("ui", Seq.empty[SparkListener])(Tabs.listeners(conf, store)).toList
    else Nil

  /** After Spark's own plugins. */
  override def setupUI(ui: SparkUI): Unit = if (fits) FailOpen("ui", ())(Tabs.reopened(ui))

  // No string interpolation, which is of one Scala.
  private def fits: Boolean = {
    val isOurs =
      try Properties.versionNumberString.startsWith(Health.build.scala)
      catch { case _: LinkageError => false }
    if (!isOurs)
      LoggerFactory.getLogger(getClass).warn(
        "aqepilot: this jar was not built for Scala " + Properties.versionNumberString +
          ", which this Spark has: take the jar with that in its name, or applications with aqepilot's " +
          "events do not open"
      )
    isOurs
  }
}

/** `createListeners` as Scala 2.12 has it, whose `Seq` is not 2.13's: the compiler adds it to a plugin of either. */
private[ui] trait InAnyScala {
  def createListeners(
      conf: SparkConf,
      store: ElementTrackingStore
  ): scala.collection.Seq[SparkListener]
}

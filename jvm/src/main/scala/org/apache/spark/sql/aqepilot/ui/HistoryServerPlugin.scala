package org.apache.spark.sql.aqepilot.ui

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.SparkUI

/** What a history server asks when it opens an application, not when it lists them. A service: `META-INF/services`. */
final private[ui] class HistoryServerPlugin extends AppHistoryServerPlugin {

  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    FailOpen("ui", Seq.empty[SparkListener])(Tabs.listeners(conf, store))

  /** After Spark's own plugins. */
  override def setupUI(ui: SparkUI): Unit = FailOpen("ui", ())(Tabs.reopened(ui))
}

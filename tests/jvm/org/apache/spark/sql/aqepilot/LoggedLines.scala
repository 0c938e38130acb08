package org.apache.spark.sql.aqepilot

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.logging.log4j.LogManager
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.{LogEvent, Logger}

/** What aqepilot logs meanwhile. */
final class LoggedLines private {

  private val lines = new ConcurrentLinkedQueue[(String, Map[String, String])]

  /** Each with what structured logs have beside it. */
  def withContext: Seq[(String, Map[String, String])] =
    lines.asScala.toSeq.filter(_._1.contains("aqepilot"))

  def all: Seq[String] = withContext.map(_._1)
}

object LoggedLines {

  def during[T](body: LoggedLines => T): T = {
    val kept = new LoggedLines
    val appender = new AbstractAppender("kept", null, null, true, Array.empty) {
      override def append(e: LogEvent): Unit =
        kept.lines.add((e.getMessage.getFormattedMessage, e.getContextData.toMap.asScala.toMap))
    }
    appender.start()
    val logger = LogManager.getRootLogger.asInstanceOf[Logger]
    logger.addAppender(appender)
    try body(kept)
    finally logger.removeAppender(appender)
  }
}

package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.AnalysisException

/** An analysis error with a message of our own: Spark keeps that constructor to its classes.
  *
  * @param line 1-based, as in Spark
  * @param startPosition 0-based column, as in Spark
  */
final class Refusal(message: String, line: Option[Int], startPosition: Option[Int])
    extends AnalysisException(message, line, startPosition, None, None, Map.empty, Array.empty)

package org.apache.spark.sql.aqepilot.decision

/** How a join runs: a strategy in Spark's hint words, and the side that it builds from, if it does. */
final case class Selection(strategy: String, buildSide: Option[String]) {

  /** Both, as the table of Spark's faults names decisions. */
  def words: String = (strategy +: buildSide.toSeq).mkString(" ")
}

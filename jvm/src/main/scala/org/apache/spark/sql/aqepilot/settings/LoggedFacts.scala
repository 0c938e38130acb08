package org.apache.spark.sql.aqepilot.settings

/** How much of a decision's facts the event log gets.
  *
  * @param name
  *   the value of `spark.aqepilot.log.facts`
  */
sealed abstract class LoggedFacts(val name: String)

object LoggedFacts {
  case object Full extends LoggedFacts("full")

  /** Without arrays of longs, whose lengths are kept. */
  case object Summary extends LoggedFacts("summary")
  case object Nothing extends LoggedFacts("none")

  private val all = Seq(Full, Summary, Nothing)

  val words: Seq[String] = all.map(_.name)

  /** The one of a word; Full for another word. */
  def of(word: String): LoggedFacts = all.find(_.name == word).getOrElse(Full)
}

package org.apache.spark.sql.aqepilot.record

import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{SparkConf, SparkContext}

/** What any session may see of settings, and of messages about settings. As in the record, what Spark's redaction
  * patterns match is hidden: by the application's patterns, and by the session's.
  */
final class Shown private (submitted: SparkConf, session: SQLConf) {
  import Shown._

  private val redact = Redaction.ofTexts(submitted) andThen Redaction.ofTexts(session)

  def text(text: String): String = redact(text)

  /** A setting's value, hidden as a whole where its key or value matches. */
  def setting(key: String, value: String): String =
    Redaction.setting(submitted, redact)(key, value)

  private lazy val hidden: Seq[(String, String)] =
    (submitted.getAll.toSeq ++ session.getAllConfs).distinct.filter { case (key, value) =>
      key.startsWith(Prefix) && setting(key, value) == Hidden
    }

  /** A message about settings, without the values of those that are hidden. */
  def message(message: String): String = {
    val quoted = hidden.map(_._2).filter(_.length >= LeastChars).sortBy(-_.length)
    val without = quoted.foldLeft(message)((text, value) => text.replace(value, Hidden))
    val about = hidden.map(_._1).filter(key => message.startsWith(key)).sortBy(-_.length).headOption
    redact(about.fold(without)(key => s"$key: $Hidden"))
  }
}

object Shown {
  val Hidden: String = Redaction.Hidden

  private val Prefix = "spark.aqepilot."

  /** A shorter value is part of any message. */
  private val LeastChars = 4

  /** @param submitted
    *   the application's, where there is one
    */
  def apply(submitted: Option[SparkConf], session: SQLConf): Shown =
    new Shown(
      submitted.orElse(SparkContext.getActive.map(_.conf)).getOrElse(new SparkConf(false)),
      session
    )
}

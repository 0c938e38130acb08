package org.apache.spark.sql.aqepilot.log

import io.aqepilot.log.{AqePilotDecision, AqePilotPolicyLoaded}
import org.apache.spark.SparkConf
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

/** Spark's own redaction over what goes into the record, before it is posted or kept.
  *
  * Source: `spark.sql.redaction.string.regex` (texts: each match is replaced) and
  * `spark.redaction.regex` (settings: a policy's text is one, and is replaced as a whole when its key
  * or the text matches).
  */
object Redaction {

  def ofTexts(conf: SQLConf): String => String = {
    val pattern = conf.stringRedactionPattern
    text => Utils.redact(pattern, text)
  }

  def decision(e: AqePilotDecision, redact: String => String): AqePilotDecision =
    e.copy(
      tables = e.tables.map(redact),
      answer = e.answer.map(redact),
      detail = e.detail.map(redact)
    )

  def policy(
      e: AqePilotPolicyLoaded,
      conf: SparkConf,
      redact: String => String
  ): AqePilotPolicyLoaded = {
    val key = s"spark.aqepilot.policy.${e.policy}"
    def setting(last: String, text: String): String =
      redact(Utils.redact(conf, Seq(s"$key.$last" -> text)).head._2)

    val text = setting(e.point, e.text)
    val when = e.when.map(setting("when", _))
    // An error quotes the text it is about.
    val error = if (text == Hidden || when.contains(Hidden)) e.error.map(_ => Hidden)
    else e.error.map(setting(e.point, _))
    e.copy(text = text, when = when, error = error)
  }

  private val Hidden = Utils.REDACTION_REPLACEMENT_TEXT
}

package org.apache.spark.sql.aqepilot.record

import org.apache.spark.SparkConf
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.Utils

import io.aqepilot.log.{
  AqePilotControl,
  AqePilotDecision,
  AqePilotExperiment,
  AqePilotPolicyLoaded,
  AqePilotQueryClosed
}

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

  /** By the submitted patterns: for what is of no one session. */
  def ofTexts(submitted: SparkConf): String => String = {
    val conf = new SQLConf
    for {
      key <- TextPatterns
      pattern <- submitted.getOption(key)
    } conf.setConfString(key, pattern)
    ofTexts(conf)
  }

  private val TextPatterns = Seq("spark.redaction.string.regex", "spark.sql.redaction.string.regex")

  /** A setting's value, or a policy's text, as it may be shown. */
  def setting(conf: SparkConf, redact: String => String)(key: String, value: String): String =
    redact(Utils.redact(conf, Seq(key -> value)).head._2)

  /** Names of jobs, runs and sessions are texts of users. */
  def closed(e: AqePilotQueryClosed, redact: String => String): AqePilotQueryClosed =
    e.copy(job = e.job.map(redact), run = e.run.map(redact), unit = e.unit.map(redact))

  def control(e: AqePilotControl, redact: String => String): AqePilotControl =
    e.copy(path = redact(e.path), rules = e.rules.map(redact), problem = e.problem.map(redact))

  def experiment(e: AqePilotExperiment, redact: String => String): AqePilotExperiment =
    e.copy(
      unit = redact(e.unit),
      detail = e.detail.map(redact),
      job = redact(e.job),
      run = redact(e.run)
    )

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
    def part(last: String, text: String): String = setting(conf, redact)(s"$key.$last", text)

    val text = part(e.point, e.text)
    val when = e.when.map(part("when", _))
    // An error quotes the text it is about.
    val error = if (text == Hidden || when.contains(Hidden)) e.error.map(_ => Hidden)
    else e.error.map(part(e.point, _))
    e.copy(text = text, when = when, error = error, limit = e.limit.map(redact))
  }

  val Hidden: String = Utils.REDACTION_REPLACEMENT_TEXT
}

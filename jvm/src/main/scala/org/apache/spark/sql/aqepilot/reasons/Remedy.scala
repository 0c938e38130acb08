package org.apache.spark.sql.aqepilot.reasons

import scala.io.Source

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** What a reader can do about the reason of a decision, or a problem of the set-up. */
object Remedy {

  private val Resource = "/org/apache/spark/sql/aqepilot/reasons/remedies.json"

  /** In Markdown; none for a code that is not of this release. */
  def ofReason(code: String): Option[String] = textOf("reasons", code)

  /** In Markdown; none for a code that is not of this release. */
  def ofProblem(code: String): Option[String] = textOf("problems", code)

  private def textOf(kind: String, code: String): Option[String] =
    Option(all.path(kind).get(code)).map(_.asText)

  private lazy val all: JsonNode = {
    val in = Source.fromInputStream(getClass.getResourceAsStream(Resource), "UTF-8")
    try new ObjectMapper().readTree(in.mkString)
    finally in.close()
  }
}

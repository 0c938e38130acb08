package org.apache.spark.sql.aqepilot.run

import java.time.OffsetDateTime

import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.aqepilot.settings.Mode

/** What the control file says.
  *
  * @param version
  *   counts its writes
  * @param writes
  *   ids of the newest writes, the newest last
  */
final case class ControlFile(version: Long, rules: Seq[ControlRule], writes: Seq[String] = Nil) {

  /** Whether it is what `other` was before somebody wrote it. A file that was made anew also counts from 1, but has
    * other writes.
    */
  def isBefore(other: ControlFile): Boolean =
    version < other.version && writes.lastOption.exists(other.writes.contains)
}

object ControlFile {

  /** Of a larger one nothing is read. */
  val MaxBytes: Int = 1 << 20
  val Format = 1

  private val mapper = new ObjectMapper()

  /** Reads the file's text. What one rule says that is not known makes it hold for more, never for less: a word that
    * is no mode is `off`, a selector that is not known is for everything, a time that is none is never.
    *
    * @return
    *   what is wrong with a text that is no control file
    */
  def parse(text: String): Either[String, ControlFile] =
    try {
      val root = mapper.readTree(text)
      if (root == null || !root.isObject) Left("it is no JSON object")
      else if (root.path("format").asInt != Format) Left(s"its format is not $Format")
      else if (!root.path("rules").isArray) Left("it has no array `rules`")
      else if (!elements(root.path("rules")).forall(_.isObject)) Left("a rule is no JSON object")
      else
        Right(
          ControlFile(
            root.path("version").asLong,
            elements(root.path("rules")).map(rule),
            elements(root.path("history")).flatMap(ControlFile.text(_, "id"))
          )
        )
    } catch {
      case NonFatal(e) =>
        Left(s"it is no JSON: ${String.valueOf(e.getMessage).takeWhile(_ != '\n')}")
    }

  private def rule(node: JsonNode) = ControlRule(
    text(node, "id").getOrElse(""),
    Mode.of(text(node, "mode").getOrElse("")),
    ControlRule.Selectors.flatMap { case (name, _) => text(node, name).map(name -> _) }.toMap,
    text(node, "until").flatMap(at =>
      Try(OffsetDateTime.parse(at).toInstant.toEpochMilli).toOption
    ),
    text(node, "reason").getOrElse("")
  )

  private def text(node: JsonNode, name: String): Option[String] =
    Option(node.get(name)).filterNot(_.isNull).map(_.asText)

  private def elements(array: JsonNode): Seq[JsonNode] =
    (0 until array.size).map(array.get)
}

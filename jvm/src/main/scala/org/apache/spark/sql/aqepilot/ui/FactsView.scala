package org.apache.spark.sql.aqepilot.ui

import java.io.{ByteArrayInputStream, DataInputStream}
import java.nio.{ByteBuffer, ByteOrder}
import java.util.Base64
import java.util.zip.InflaterInputStream

import scala.util.Try
import scala.xml.Node

import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.aqepilot.facts.FactsJson

/** A decision's facts, as its query's page shows them.
  *
  * @param json
  *   as [[org.apache.spark.sql.aqepilot.facts.FactsJson]] writes them
  */
final private[ui] class FactsView(json: String) {
  import FactsView._

  private val root: JsonNode = Try(mapper.readTree(json)).getOrElse(mapper.createObjectNode())

  /** Each group of facts with those that tell most, in one line. */
  def main: Seq[Node] = groups.flatMap { case (name, group) =>
    val known = Main.flatMap(fact => Option(group.get(fact)).filter(isTelling).map(fact -> _))
    if (known.isEmpty) Nil
    else
      <div><strong>{name}</strong> {
        known.map { case (fact, value) => s"${fact.replace('_', ' ')} ${text(fact, value)}" }
          .mkString(", ")
      }</div>
  }

  private def isTelling(value: JsonNode): Boolean =
    !value.isNull && !(value.isArray && value.size == 0)

  /** All that are known, folded. */
  def all: Seq[Node] = {
    val known = groups.flatMap { case (name, group) =>
      fields(group).filterNot(_._2.isNull).map { case (fact, value) =>
        <tr><td>{s"$name.$fact"}</td><td>{text(fact, value)}</td></tr>
      }
    }
    if (known.isEmpty) Nil
    else
      Html.fold(
        <span>{Html.count(known.size.toLong, "fact")}</span>,
        <table class="table table-sm"><tbody>{known}</tbody></table>
      )
  }

  /** The partitions of each shuffle that a decision knows. */
  def shuffles: Seq[ShuffleView] = groups.flatMap { case (name, group) =>
    for {
      largest <- long(group, "max_bytes")
      median <- long(group, "median_bytes")
    } yield ShuffleView(
      name,
      longs(group.get("bytes_by_partition_id")),
      long(group, "num_partitions"),
      long(group, "shuffle_bytes"),
      largest,
      median
    )
  }

  private def groups: Seq[(String, JsonNode)] = fields(root).filter(_._2.isObject)

  private def text(fact: String, value: JsonNode): String = value match {
    case n if n.isIntegralNumber && fact.endsWith("bytes") => Html.bytes(n.asLong)
    case n if n.isIntegralNumber                           => Html.number(n.asLong)
    case packed: ObjectNode if packed.has("left_out")      =>
      Html.count(packed.get("left_out").asLong, "number") + ", left out of the log"
    case packed: ObjectNode if packed.has("packed") =>
      Html.count(packed.path("n").asLong, "number")
    case array if array.isArray && array.size > MostElements =>
      elements(array).take(MostElements).map(text(fact, _)).mkString("", ", ", ", \u2026")
    case array if array.isArray   => elements(array).map(text(fact, _)).mkString(", ")
    case other if other.isTextual => other.asText.take(MostChars)
    case other                    => other.toString.take(MostChars)
  }
}

private[ui] object FactsView {

  private val mapper = new ObjectMapper()
  private val MostElements = 20
  private val MostChars = 1000
  private val MostLongs = 1000000

  private val Main = Seq(
    "type",
    "strategy",
    "hint",
    "conversion",
    "command",
    "format",
    "table",
    "tables",
    "size_in_bytes",
    "row_count",
    "estimate_from",
    "shuffle_bytes",
    "num_partitions",
    "num_shuffles",
    "num_relations",
    "num_tasks",
    "tasks",
    "cost",
    "current_cost",
    "spark_faults"
  )

  private def fields(node: JsonNode): Seq[(String, JsonNode)] = {
    val names = node.fieldNames()
    Iterator.continually(names).takeWhile(_.hasNext).map(_.next()).map(n => n -> node.get(n)).toList
  }

  private def elements(node: JsonNode): Seq[JsonNode] = (0 until node.size).map(node.get(_))

  private def long(node: JsonNode, fact: String): Option[Long] =
    Option(node.get(fact)).filter(_.isIntegralNumber).map(_.asLong)

  /** An array as it is in the log; none where it is not in it. */
  def longs(value: JsonNode): Option[Array[Long]] = value match {
    case null                   => None
    case array if array.isArray => Some(elements(array).map(_.asLong).toArray)
    case packed if packed.path("packed").asText == FactsJson.Packed =>
      Try(unpacked(packed.path("data").asText, packed.path("n").asInt)).toOption
    case _ => None
  }

  private def unpacked(data: String, count: Int): Array[Long] = {
    require(count <= MostLongs, s"$count numbers")
    val packed = new ByteArrayInputStream(Base64.getDecoder.decode(data))
    val stream = new DataInputStream(new InflaterInputStream(packed))
    val bytes = new Array[Byte](8 * count)
    try stream.readFully(bytes)
    finally stream.close()
    val longs = new Array[Long](count)
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(longs)
    longs
  }
}

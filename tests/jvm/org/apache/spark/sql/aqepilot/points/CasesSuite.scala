package org.apache.spark.sql.aqepilot.points

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Guards}
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.HashTable
import org.apache.spark.sql.aqepilot.sql.Rehearsal
import org.scalatest.funsuite.AnyFunSuite

/** The cases that both languages run: facts, policy, guard rails -> answer, decision, reason. */
class CasesSuite extends AnyFunSuite {

  DecisionPoints.all.foreach { point =>
    val file = getClass.getResource(s"/${point.name}.json")
    assert(file != null, s"tests/cases/${point.name}.json is missing")
    val whole = new ObjectMapper().readTree(file)
    whole.get("cases").elements().forEachRemaining { c =>
      test(s"${point.name}: ${c.get("name").asText}") {
        val Seq(answer, decision, reason, _) = Rehearsal.decide(
          point,
          c.get("policy").asText,
          Rehearsal.parse(point, merged(whole.get("facts"), c.get("facts")).toString),
          guards(merged(whole.get("settings"), c.get("settings")))
        )
        assert(answer === text(c.get("answer")))
        assert(decision === text(c.get("decision")))
        assert(reason === c.get("reason").asText)
      }
    }
  }

  /** What the file says of all cases, with a case's difference. */
  private def merged(all: JsonNode, difference: JsonNode): JsonNode = (all, difference) match {
    case (same, null)                              => same
    case (all: ObjectNode, difference: ObjectNode) =>
      val both = all.deepCopy()
      difference.fieldNames().forEachRemaining { name =>
        both.set[JsonNode](name, merged(all.get(name), difference.get(name)))
      }
      both
    case _ => difference
  }

  private def guards(settings: JsonNode) = {
    def given[T](key: String, otherwise: T)(read: String => T) =
      Option(settings.get(key)).fold(otherwise)(v => read(v.asText))
    new Guards(
      given("guard.max_broadcast_bytes", Long.MaxValue)(JavaUtils.byteStringAsBytes),
      200L << 20,
      given("guard.max_hash_build_bytes", Long.MaxValue)(JavaUtils.byteStringAsBytes),
      given("guard.growth", HashTable.Growth)(_.toDouble),
      given("guard.max_partitions", AqePilotConf.MaxPartitions.default.get.toInt)(_.toInt),
      given("guard.max_cross_products", 0)(_.toInt)
    )
  }

  /** A word or number as text; a struct's fields as the JSON that the record has. */
  private def text(node: JsonNode): Option[String] =
    if (node.isNull) None else Some(if (node.isObject) node.toString else node.asText)
}

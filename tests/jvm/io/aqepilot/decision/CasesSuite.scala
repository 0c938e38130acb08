package io.aqepilot.decision

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.aqepilot.Rehearsal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.scalatest.funsuite.AnyFunSuite

/** The cases that both languages run: facts, policy, guard rails -> answer, decision, reason. */
class CasesSuite extends AnyFunSuite {

  DecisionPoints.all.foreach { point =>
    val file = getClass.getResource(s"/${point.name}.json")
    assert(file != null, s"tests/cases/${point.name}.json is missing")
    val cases = new ObjectMapper().readTree(file).get("cases")
    cases.elements().forEachRemaining { c =>
      test(s"${point.name}: ${c.get("name").asText}") {
        val (answer, verdict) = Rehearsal.decide(
          point,
          c.get("policy").asText,
          Rehearsal.parse(point, c.get("facts").toString),
          guards(c.get("settings"))
        )
        assert(answer === text(c.get("answer")))
        assert(verdict.word === text(c.get("decision")))
        assert(verdict.reason.code === c.get("reason").asText)
      }
    }
  }

  private def guards(settings: JsonNode) = Guards(
    JavaUtils.byteStringAsBytes(settings.get("guard.max_broadcast_bytes").asText),
    JavaUtils.byteStringAsBytes(settings.get("guard.max_hash_build_bytes").asText),
    settings.get("guard.growth").asText.toDouble
  )

  private def text(node: JsonNode): Option[String] = if (node.isNull) None else Some(node.asText)
}

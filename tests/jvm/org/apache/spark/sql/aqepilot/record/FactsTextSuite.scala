package org.apache.spark.sql.aqepilot.record

import org.apache.spark.sql.aqepilot.decision.DecisionPoints
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsJson}
import org.apache.spark.sql.aqepilot.points.cost_evaluation.CostEvaluationPoint
import org.apache.spark.sql.aqepilot.settings.LoggedFacts
import org.apache.spark.sql.aqepilot.sql.Rehearsal
import org.scalatest.funsuite.AnyFunSuite

class FactsTextSuite extends AnyFunSuite {

  test("facts are written in two parts: what every point has, and the rest") {
    val row = Rehearsal.parse(CostEvaluationPoint, """{"conf":{"shuffle_partitions":7}}""")
    val schema = CostEvaluationPoint.facts
    def of(how: LoggedFacts) = FactsText.of(row, schema)(how, identity)
    val Some(full) = of(LoggedFacts.Full)
    assert(full.whole == FactsJson.write(row, schema, identity))
    assert(full.common.contains("\"shuffle_partitions\":7") && full.own.startsWith("{\"plan\""))
    assert(of(LoggedFacts.Summary).get.commonId == full.commonId)
    assert(of(LoggedFacts.Nothing).isEmpty)
    val other = Rehearsal.parse(CostEvaluationPoint, """{"conf":{"shuffle_partitions":8}}""")
    assert(FactsText.of(other, schema)(LoggedFacts.Full, identity).get.commonId != full.commonId)
  }

  test("the facts that every point has are the first of each") {
    for (point <- DecisionPoints.all)
      assert(point.facts.take(CommonFacts.fields.size) == CommonFacts.fields, point.name)
  }
}

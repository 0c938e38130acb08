package org.apache.spark.sql.aqepilot

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, DecisionPoints, Health, SparkFaults}
import org.apache.spark.sql.aqepilot.facts.HistoryFacts
import org.apache.spark.sql.aqepilot.policy.sql.AqePilotBytes
import org.apache.spark.sql.aqepilot.reasons.{Fate, Problem, Reason}
import org.apache.spark.sql.aqepilot.run.ControlRule
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Experiment, RunIdentity}
import org.apache.spark.sql.aqepilot.sql.{AqePilotAnswer, DecisionRow, SqlFunctions}
import org.apache.spark.sql.types.{StructField, StructType}

/** All names that a user may meet, with their meanings, as JSON: `python/aqepilot/catalog.json` is its output,
  * from which the command line and the docs are made.
  */
object Catalog {

  private val mapper = new ObjectMapper()

  def main(args: Array[String]): Unit =
    println(mapper.writerWithDefaultPrettyPrinter().writeValueAsString(json))

  def json: ObjectNode = {
    val root = mapper.createObjectNode()
    root.put("version", Health.build.version)
    val points = root.putArray("points")
    DecisionPoints.all.foreach(point(points.addObject(), _))
    leaves(root.putArray("history"), HistoryFacts.ofPlan.schema)
    leaves(root.putArray("query_history"), HistoryFacts.ofQuery.schema)
    val settings = root.putArray("settings")
    AqePilotConf.settings.foreach { s =>
      setting(settings, s.key, s.valueType.name, s.default.orNull, s.where, s.meaning)
    }
    AqePilotConf.policySettings.foreach { case (key, valueType, meaning) =>
      setting(settings, key, valueType, null, "any", meaning)
    }
    pairs(root.putArray("reasons"), "code", Reason.all.map(r => r.code -> r.meaning))
    pairs(root.putArray("problems"), "code", Problem.meanings)
    pairs(root.putArray("fates"), "name", Fate.all.map(f => f.code -> f.meaning))
    pairs(root.putArray("run_sources"), "name", RunIdentity.Sources)
    pairs(root.putArray("experiment_units"), "name", Experiment.UnitKinds)
    pairs(root.putArray("control_selectors"), "name", ControlRule.Selectors)
    val columns = root.putArray("decision_columns")
    DecisionRow.all.foreach { column =>
      leaf(columns.addObject(), "name", column.fact.field).put("is_optional", column.isOptional)
    }
    root.set[ObjectNode]("spark_faults", mapper.readTree(SparkFaults.text))
    val functions = SqlFunctions.all.map(f => f.name -> f.usage) ++
      Seq(
        AqePilotAnswer.name -> AqePilotAnswer.info.getUsage,
        AqePilotBytes.name -> AqePilotBytes.info.getUsage
      )
    pairs(root.putArray("functions"), "name", functions)
    root
  }

  private def point(node: ObjectNode, p: DecisionPoint[_]): Unit = {
    node.put(
      "name",
      p.name
    ).put("built_in", p.builtIn).put("asked", p.asked).put("summary", p.summary)
    val decision = node.putObject("decision").put("meaning", p.answerMeaning)
    p.answer match {
      case struct: StructType =>
        decision.put("type", "struct")
        leaves(decision.putArray("fields"), struct)
      case scalar =>
        decision.put("type", scalar.catalogString)
        decision.putArray("fields")
    }
    pairs(decision.putArray("words"), "word", p.words.map(w => w.word -> w.meaning))
    leaves(node.putArray("facts"), p.facts)
  }

  private def leaves(to: ArrayNode, schema: StructType): Unit =
    DecisionPoints.leaves(schema).foreach { case (path, field) =>
      leaf(to.addObject(), "path", field.copy(name = path))
    }

  private def leaf(node: ObjectNode, key: String, field: StructField): ObjectNode =
    node
      .put(key, field.name)
      .put("type", field.dataType.catalogString)
      .put("meaning", field.getComment().getOrElse(""))

  private def setting(
      to: ArrayNode,
      key: String,
      valueType: String,
      default: String,
      where: String,
      meaning: String
  ): Unit =
    to.addObject()
      .put("key", key)
      .put("type", valueType)
      .put("default", default)
      .put("where", where)
      .put("meaning", meaning)

  private def pairs(to: ArrayNode, name: String, rows: Seq[(String, String)]): Unit =
    rows.foreach { case (key, meaning) => to.addObject().put(name, key).put("meaning", meaning) }
}

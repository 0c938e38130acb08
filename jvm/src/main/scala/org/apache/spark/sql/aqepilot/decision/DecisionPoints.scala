package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.facts.CommonFacts
import org.apache.spark.sql.types.{StructField, StructType}

/** All decision points, each found in the package of its own name: what is common to all refers to none. */
object DecisionPoints {

  /** In the order in which Spark comes to them. */
  val names: Seq[String] = Seq(
    "join_reorder",
    "write_distribution",
    "join_selection",
    "shuffle_partitions",
    "dynamic_join_selection",
    "skew_join",
    "cost_evaluation",
    "partition_coalescing"
  )

  val all: Seq[DecisionPoint[_]] = names.map(load)

  private def load(name: String): DecisionPoint[_] = {
    val point = name.split('_').map(_.capitalize).mkString
    Class
      .forName(s"org.apache.spark.sql.aqepilot.points.$name.${point}Point$$")
      .getField("MODULE$")
      .get(null)
      .asInstanceOf[DecisionPoint[_]]
  }

  def named(name: String): Option[DecisionPoint[_]] = all.find(_.name == name)

  /** The facts that a policy's `when` may use: those known before any point is asked. */
  val whenFacts: StructType = StructType(CommonFacts.fields.take(1))

  /** Path, type and meaning of each fact of a group, e.g. `side.max_bytes`, or of each field of an answer. */
  def leaves(schema: StructType): Seq[(String, StructField)] =
    schema.fields.toSeq.flatMap { field =>
      field.dataType match {
        case group: StructType =>
          group.fields.toSeq.map(fact => (s"${field.name}.${fact.name}", fact))
        case _ => Seq((field.name, field))
      }
    }
}

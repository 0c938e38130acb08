package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.facts.FactsRow

/** What an answer at `write_distribution` says.
  *
  * @param columns
  *   None = the dynamic partition columns
  * @param targetBytes
  *   None = `spark.sql.adaptive.advisoryPartitionSizeInBytes`
  */
final case class WriteDecision(
    rebalance: Option[Boolean],
    columns: Option[Seq[Option[String]]],
    targetBytes: Option[Long]
) {

  def rebalances: Boolean = rebalance.contains(true)

  /** The written columns that rows are distributed by, by the names that the write has for them; none = evenly.
    * Those that are the same in all rows are left out, as all rows would come to one task.
    */
  def by(facts: FactsRow): Seq[String] = {
    val named = columns.fold(facts.strings("write.dynamic_columns"))(_.flatten)
      .map(n => WriteDecision.column(n, facts.strings("input.distributing_columns")).getOrElse(n))
    named.diff(facts.strings("write.constant_columns")).distinct
  }
}

private object WriteDecision {

  /** A column by its name, in other cases, too, where that is one only. */
  def column(name: String, columns: Seq[String]): Option[String] =
    columns.find(_ == name).orElse(columns.filter(_.equalsIgnoreCase(name)) match {
      case Seq(one) => Some(one)
      case _        => None
    })
}

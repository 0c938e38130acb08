package org.apache.spark.sql.aqepilot.log

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import io.aqepilot.terms.{FactsJson, LoggedFacts}

/** A decision's facts as JSON, written when it is asked for. */
trait FactsText {

  /** @param how
    *   how much of them
    * @param redact
    *   redacts their texts
    * @return
    *   None where nothing is to be written
    */
  def apply(how: LoggedFacts, redact: String => String): Option[String]
}

object FactsText {

  def of(facts: InternalRow, schema: StructType): FactsText = (how, redact) =>
    how match {
      case LoggedFacts.Full    => Some(FactsJson.write(facts, schema, redact))
      case LoggedFacts.Summary => Some(FactsJson.writeSummary(facts, schema, redact))
      case LoggedFacts.Nothing => None
    }

  /** Nobody was asked. */
  val none: FactsText = (_, _) => None
}

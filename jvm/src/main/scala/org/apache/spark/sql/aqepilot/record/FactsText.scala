package org.apache.spark.sql.aqepilot.record

import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsJson}
import org.apache.spark.sql.aqepilot.settings.LoggedFacts
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType

import io.aqepilot.log.AqePilotDecision

/** A decision's facts as JSON.
  *
  * @param commonId
  *   equal where `common` is
  * @param common
  *   an object of those that every point has, which are the same in most decisions of a query
  * @param own
  *   an object of the others
  */
final case class WrittenFacts(commonId: String, common: String, own: String) {

  /** All of them. */
  def whole: String = common.dropRight(1) + "," + own.drop(1)

  /** A decision with them, as the event log has it.
    *
    * @param isCommonLogged
    *   whether another event of the execution has `common` already
    */
  def in(decision: AqePilotDecision, isCommonLogged: Boolean): AqePilotDecision = decision.copy(
    facts = Some(own),
    commonFactsId = Some(commonId),
    commonFacts = if (isCommonLogged) None else Some(common)
  )
}

/** A decision's facts, written as JSON when it is asked for. */
trait FactsText {

  /** @param how
    *   how much of them
    * @param redact
    *   redacts their texts
    * @return
    *   None where nothing is to be written
    */
  def apply(how: LoggedFacts, redact: String => String): Option[WrittenFacts]
}

object FactsText {

  def of(facts: InternalRow, schema: StructType): FactsText = (how, redact) => {
    val count = CommonFacts.fields.size
    val values = facts.toSeq(schema)
    val (common, own) = values.splitAt(count)
    val (ofCommon, ofOwn) = schema.fields.splitAt(count)
    def written(write: (InternalRow, StructType, String => String) => String) = {
      val row = InternalRow.fromSeq(common)
      val fields = StructType(ofCommon)
      Some(
        WrittenFacts(
          FactsJson.id(row, fields),
          write(row, fields, redact),
          write(InternalRow.fromSeq(own), StructType(ofOwn), redact)
        )
      )
    }
    how match {
      case LoggedFacts.Full    => written(FactsJson.write)
      case LoggedFacts.Summary => written(FactsJson.writeSummary)
      case LoggedFacts.Nothing => None
    }
  }

  /** Nobody was asked. */
  val none: FactsText = (_, _) => None
}

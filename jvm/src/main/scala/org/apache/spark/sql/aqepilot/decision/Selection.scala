package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.unsafe.types.UTF8String

/** A strategy in Spark's hint words, and the side that it builds from, if it does. */
final case class Selection(strategy: String, buildSide: Option[String]) {

  /** Both, as the table of Spark's faults names decisions. */
  def words: String = (strategy +: buildSide.toSeq).mkString(" ")

  def row: InternalRow = new GenericInternalRow(
    Array[Any](
      UTF8String.fromString(strategy),
      buildSide.map(UTF8String.fromString).orNull
    )
  )
}

object Selection {
  def of(row: InternalRow): Selection =
    Selection(string(row, 0).getOrElse(""), string(row, 1))

  private[aqepilot] def string(row: InternalRow, at: Int): Option[String] =
    if (row.isNullAt(at)) None else Some(row.getUTF8String(at).toString)
}

package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.facts.Fact
import org.apache.spark.sql.types.{DataType, MetadataBuilder, StructField, StructType}

/** The fields of an answer that is a struct. */
object AnswerField {

  private val Bare = "aqepilot.bare"

  /** A field that may be null; its comment is its meaning. */
  def apply(name: String, dataType: DataType, meaning: String): StructField =
    Fact.field(name, dataType, meaning)

  /** Marks the field that an answer may give without the struct around it. */
  def bare(field: StructField): StructField = field.copy(metadata =
    new MetadataBuilder().withMetadata(field.metadata).putBoolean(Bare, true).build()
  )

  /** The field that an answer of this type may give so, if there is one. */
  def bareOf(answer: DataType): Option[StructField] = answer match {
    case struct: StructType => struct.find(_.metadata.contains(Bare))
    case _                  => None
  }
}

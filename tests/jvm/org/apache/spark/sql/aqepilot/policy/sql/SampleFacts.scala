package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.aqepilot.policy.{PolicyError, SqlPolicy}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** A small facts schema in the shape of the real ones, and rows of it. */
trait SampleFacts {
  val facts: StructType = StructType.fromDDL(
    """query struct<execution_id: bigint, description: string>,
      |join struct<type: string, key_count: int>,
      |side struct<is_left: boolean, max_bytes: bigint, median_bytes: bigint,
      |  bytes_by_partition_id: array<bigint>, non_empty_ratio: double>,
      |other struct<max_bytes: bigint, row_count: bigint>""".stripMargin
  )

  def row(bytes: Long*): InternalRow = InternalRow(
    InternalRow(7L, UTF8String.fromString("12:30:00")),
    InternalRow(UTF8String.fromString("INNER"), 2),
    InternalRow(
      true,
      bytes.max,
      bytes.sorted.apply(bytes.size / 2),
      UnsafeArrayData.fromPrimitiveArray(bytes.toArray),
      0.5
    ),
    InternalRow(null, null)
  )

  def compiled(text: String, answer: DataType = StringType): SqlPolicy =
    PolicyCompiler.compile(text, facts, answer) match {
      case Right(policy) => policy
      case Left(error)   => throw new AssertionError(s"$text: $error")
    }

  def refused(text: String, answer: DataType = StringType): PolicyError =
    PolicyCompiler.compile(text, facts, answer) match {
      case Left(error) => error
      case Right(_)    => throw new AssertionError(s"not refused: $text")
    }

  /** The answer for `row(1, 2, 3, 60)`, strings as such. */
  def answer(text: String, dataType: DataType = StringType): Any =
    compiled(text, dataType).eval(row(1, 2, 3, 60)) match {
      case Right(string: UTF8String) => string.toString
      case Right(other)              => other
      case Left(failure)             => failure
    }
}

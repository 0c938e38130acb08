package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.catalyst.expressions.{
  GenericInternalRow,
  UnsafeArrayData,
  UnsafeMapData,
  UnsafeRow
}
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData, MapData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The size of a Catalyst value to a function that goes through it: an array that holds one text a hundred times
  * has a hundred times its size.
  */
private[policy] object ValueSize {
  private val Reference = 8L
  private val TextObject = 16L

  /** Whether values of a type may be large. */
  def isAny(dataType: DataType): Boolean = dataType match {
    case _: StringType | BinaryType | _: ArrayType | _: MapType | _: StructType => true
    case _                                                                      => false
  }

  /** The size in bytes; zero for numbers and for rows of facts.
    *
    * @param most counting may stop above this
    */
  def bytes(value: Any, most: Long): Long = value match {
    case s: UTF8String         => s.numBytes.toLong
    case b: Array[Byte]        => b.length.toLong
    case a: UnsafeArrayData    => a.getSizeInBytes.toLong
    case m: UnsafeMapData      => m.getSizeInBytes.toLong
    case r: UnsafeRow          => r.getSizeInBytes.toLong
    case a: GenericArrayData   => elements(a.array, most)
    case a: ArrayData          => a.numElements() * Reference
    case m: MapData            => bytes(m.keyArray(), most) + bytes(m.valueArray(), most)
    case r: GenericInternalRow => elements(r.values, most)
    case _                     => 0L
  }

  private def elements(values: Array[_], most: Long): Long = {
    var size = Reference * values.length
    var i = 0
    while (i < values.length && size <= most) {
      size += (values(i) match {
        case s: UTF8String => TextObject + s.numBytes
        case other         => bytes(other, most - size)
      })
      i += 1
    }
    size
  }
}

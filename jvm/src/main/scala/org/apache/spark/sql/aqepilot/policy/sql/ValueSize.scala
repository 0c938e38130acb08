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

/** How large a Catalyst value is to who goes through it: an array of a text a hundred times has a hundred times its
  * size, though the text is there once.
  */
private[policy] object ValueSize {
  private val Reference = 8L
  private val TextObject = 16L

  /** Whether values of a type have any size to speak of. */
  def isAny(dataType: DataType): Boolean = dataType match {
    case _: StringType | BinaryType | _: ArrayType | _: MapType | _: StructType => true
    case _                                                                      => false
  }

  /** In bytes. A row of facts, which is no value of the policy's, has none.
    *
    * @param most
    *   where it stops to count
    */
  def of(value: Any, most: Long): Long = value match {
    case s: UTF8String         => s.numBytes.toLong
    case b: Array[Byte]        => b.length.toLong
    case a: UnsafeArrayData    => a.getSizeInBytes.toLong
    case m: UnsafeMapData      => m.getSizeInBytes.toLong
    case r: UnsafeRow          => r.getSizeInBytes.toLong
    case a: GenericArrayData   => elements(a.array, most)
    case a: ArrayData          => a.numElements() * Reference
    case m: MapData            => of(m.keyArray(), most) + of(m.valueArray(), most)
    case r: GenericInternalRow => elements(r.values, most)
    case _                     => 0L
  }

  /** How many parts it has that are compared with others: characters, elements. */
  def parts(value: Any): Long = value match {
    case s: UTF8String  => s.numBytes.toLong
    case b: Array[Byte] => b.length.toLong
    case a: ArrayData   => a.numElements().toLong
    case m: MapData     => m.numElements().toLong
    case _              => 1L
  }

  private def elements(values: Array[_], most: Long): Long = {
    var size = Reference * values.length
    var i = 0
    while (i < values.length && size <= most) {
      size += (values(i) match {
        case s: UTF8String => TextObject + s.numBytes
        case other         => of(other, most - size)
      })
      i += 1
    }
    size
  }
}

package org.apache.spark.sql.aqepilot.facts

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

/** A facts row read by path, e.g. `side.max_bytes`; None is null. */
final class FactsRow(schema: StructType, row: InternalRow) {

  def long(path: String): Option[Long] = at(path).map {
    case n: Int => n.toLong
    case n      => n.asInstanceOf[Long]
  }

  def double(path: String): Option[Double] = at(path).map(_.asInstanceOf[Double])

  def boolean(path: String): Option[Boolean] = at(path).map(_.asInstanceOf[Boolean])

  def isTrue(path: String): Boolean = at(path).contains(true)

  /** An array of bigint without nulls. */
  def longs(path: String): Option[Array[Long]] =
    at(path).map(_.asInstanceOf[ArrayData].toLongArray())

  /** An array of int. */
  def ints(path: String): Option[Seq[Option[Int]]] = at(path).map { value =>
    val array = value.asInstanceOf[ArrayData]
    (0 until array.numElements()).map(i => if (array.isNullAt(i)) None else Some(array.getInt(i)))
  }

  /** An array of structs; none where the array is null. */
  def rows(path: String, numFields: Int): Seq[InternalRow] =
    at(path).fold(Seq.empty[InternalRow]) { value =>
      val array = value.asInstanceOf[ArrayData]
      (0 until array.numElements()).map(array.getStruct(_, numFields))
    }

  def string(path: String): Option[String] = at(path).map(_.toString)

  /** An array of string, nulls left out; none where the array is null. */
  def strings(path: String): Seq[String] = optionalStrings(path).flatten

  /** An array of string; none where the array is null. */
  def optionalStrings(path: String): Seq[Option[String]] =
    at(path).fold(Seq.empty[Option[String]]) { value =>
      val array = value.asInstanceOf[ArrayData]
      (0 until array.numElements()).map { i =>
        if (array.isNullAt(i)) None else Some(array.getUTF8String(i).toString)
      }
    }

  def isNull(path: String): Boolean = at(path).isEmpty

  private def at(path: String): Option[Any] = {
    var current = row
    var value: Any = null
    val steps = FactsRow.steps(schema, path)
    var i = 0
    while (i < steps.length) {
      val (ordinal, dataType) = steps(i)
      if (current == null || current.isNullAt(ordinal)) return None
      value = current.get(ordinal, dataType)
      value match {
        case nested: InternalRow => current = nested
        case _                   => current = null
      }
      i += 1
    }
    Option(value)
  }
}

private[aqepilot] object FactsRow {

  private val known = new ConcurrentHashMap[(Int, String), Array[(Int, DataType)]]()

  def steps(schema: StructType, path: String): Array[(Int, DataType)] =
    known.computeIfAbsent(
      (System.identityHashCode(schema), path),
      _ => {
        var current: DataType = schema
        path.split('.').map { name =>
          val struct = current.asInstanceOf[StructType]
          val ordinal = struct.fieldIndex(name)
          current = struct(ordinal).dataType
          (ordinal, current)
        }
      }
    )
}

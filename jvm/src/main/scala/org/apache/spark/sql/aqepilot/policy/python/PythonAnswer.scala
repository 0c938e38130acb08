package org.apache.spark.sql.aqepilot.policy.python

import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.aqepilot.decision.AnswerField
import org.apache.spark.sql.aqepilot.reasons.NearestNames
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** What a Python function returned, as JSON, made into a Catalyst value of a point's answer type. */
object PythonAnswer {

  final class WrongAnswer(message: String) extends RuntimeException(message)

  private val mapper =
    new ObjectMapper().configure(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS.mappedFeature, true)

  /** @return null for None
    * @throws WrongAnswer
    *   naming the field, what it holds and what is allowed
    */
  def of(json: String, answer: DataType): Any = {
    val node =
      try mapper.readTree(json)
      catch {
        case e: java.io.IOException =>
          wrong("the answer", s"no JSON (${e.getClass.getSimpleName})", "a decision")
      }
    (answer, AnswerField.bareOf(answer)) match {
      case (struct: StructType, Some(field)) if !node.isObject && !node.isNull =>
        val row = new Array[Any](struct.length)
        row(struct.fieldIndex(field.name)) =
          value(node, field.dataType, s"the answer (${field.name})")
        new GenericInternalRow(row)
      case _ => value(node, answer, "the answer")
    }
  }

  private def value(node: JsonNode, dataType: DataType, what: String): Any = dataType match {
    case _ if node.isNull              => null
    case StringType if node.isTextual  => UTF8String.fromString(node.textValue)
    case BooleanType if node.isBoolean => node.booleanValue
    case DoubleType if node.isNumber   => node.doubleValue
    case LongType if isWhole(node)     => whole(node, what, Long.MinValue, Long.MaxValue)
    case IntegerType if isWhole(node)  => whole(node, what, Int.MinValue, Int.MaxValue).toInt
    case ArrayType(element, _) if node.isArray =>
      new GenericArrayData(
        Array.tabulate[Any](node.size)(i => value(node.get(i), element, s"$what, element $i"))
      )
    case struct: StructType if node.isObject => row(node, struct)
    case _                                   => wrong(what, shown(node), allowed(dataType))
  }

  private def row(node: JsonNode, struct: StructType): GenericInternalRow = {
    val known = struct.fieldNames.toSeq
    val names = node.fieldNames()
    while (names.hasNext) {
      val name = names.next()
      if (!known.contains(name))
        throw new WrongAnswer(
          s"a decision has no field '$name'${NearestNames.instead(name, known)}."
        )
    }
    new GenericInternalRow(struct.fields.map { field =>
      if (!node.has(field.name)) null else value(node.get(field.name), field.dataType, field.name)
    }.toArray[Any])
  }

  private def isWhole(node: JsonNode): Boolean = node.isIntegralNumber

  private def whole(node: JsonNode, what: String, least: Long, most: Long): Long =
    if (node.canConvertToLong && node.longValue >= least && node.longValue <= most) node.longValue
    else wrong(what, shown(node), s"a whole number from $least to $most")

  private def allowed(dataType: DataType): String = dataType match {
    case StringType             => "a string"
    case BooleanType            => "True or False"
    case DoubleType             => "a number"
    case IntegerType | LongType => "a whole number (an int)"
    case ArrayType(element, _)  => s"a sequence, each element ${allowed(element)}"
    case struct: StructType     => struct.fieldNames.mkString("a mapping of ", ", ", "")
    case other                  => other.simpleString
  }

  private def shown(node: JsonNode): String = {
    val text = node.toString
    if (text.length <= 80) text else text.take(80) + "..."
  }

  private def wrong(what: String, is: String, allowed: String): Nothing =
    throw new WrongAnswer(s"$what is $is; it has to be $allowed, or None.")
}

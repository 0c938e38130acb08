package io.aqepilot.policy

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction
import org.apache.spark.sql.catalyst.expressions.{
  CaseWhen,
  Cast,
  CreateNamedStruct,
  Expression,
  Literal
}
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, TreeNodeTag}
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** Lets a policy name only the fields that it decides: `named_struct('skew_factor', 3.0, 'force', true)` where
  * an answer is expected becomes the whole struct, other fields null, so that the branches of a CASE need not
  * name the same ones.
  */
private[policy] object StructAnswer {
  import PolicyError._
  import TextCheck.refuse

  /** On the casts that are made here: what the field is called. */
  val field: TreeNodeTag[String] = TreeNodeTag[String]("aqepilot.field")

  def apply(parsed: Expression, answer: DataType): Expression = answer match {
    case struct: StructType => completed(parsed, struct)
    case _                  => parsed
  }

  /** Through all that hands a value on: CASE, if, coalesce. */
  private def completed(e: Expression, answer: StructType): Expression = e match {
    case CaseWhen(branches, otherwise) =>
      CurrentOrigin.withOrigin(e.origin) {
        CaseWhen(
          branches.map { case (condition, value) => (condition, completed(value, answer)) },
          otherwise.map(completed(_, answer))
        )
      }
    case f: UnresolvedFunction if named(f, "named_struct") =>
      CurrentOrigin.withOrigin(f.origin)(struct(f, answer))
    case f: UnresolvedFunction if named(f, "if") && f.arguments.size == 3 =>
      handedOn(f, f.arguments.head +: f.arguments.tail.map(completed(_, answer)))
    case f: UnresolvedFunction if named(f, "coalesce") || named(f, "ifnull") || named(f, "nvl") =>
      handedOn(f, f.arguments.map(completed(_, answer)))
    case other => other
  }

  private def handedOn(f: UnresolvedFunction, arguments: Seq[Expression]) =
    CurrentOrigin.withOrigin(f.origin)(f.copy(arguments = arguments))

  private def named(f: UnresolvedFunction, name: String) =
    f.nameParts.map(_.toLowerCase(Locale.ROOT)) == Seq(name)

  private def struct(f: UnresolvedFunction, answer: StructType): Expression = {
    val at = f.origin
    if (f.arguments.isEmpty || f.arguments.size % 2 != 0)
      refuse(InvalidExpression, "named_struct takes pairs of a field's name and its value.", at)
    val pairs = f.arguments.grouped(2).map {
      case Seq(Literal(name: UTF8String, StringType), value) =>
        val known = answer.fieldNames.toSeq
        known.find(_.equalsIgnoreCase(name.toString)) match {
          case Some(field) => field -> value
          case None        =>
            refuse(
              UnknownField,
              s"A decision has no field '$name'${NearestNames.instead(name.toString, known)}.",
              at,
              NearestNames.of(name.toString, known)
            )
        }
      case _ => refuse(InvalidExpression, "A field's name must be written out, in quotes.", at)
    }.toSeq
    pairs.groupBy(_._1).find(_._2.size > 1).foreach { case (name, _) =>
      refuse(InvalidExpression, s"The field '$name' is given twice.", at)
    }
    val values = pairs.toMap
    CreateNamedStruct(answer.fields.toSeq.flatMap { of =>
      val value = values.get(of.name).fold[Expression](Literal(null, of.dataType)) { v =>
        val cast = Cast(v, of.dataType, Some("UTC"))
        cast.setTagValue(field, of.name)
        cast
      }
      Seq(Literal(of.name), value)
    })
  }
}

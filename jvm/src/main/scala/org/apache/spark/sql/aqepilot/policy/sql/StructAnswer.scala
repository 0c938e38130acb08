package org.apache.spark.sql.aqepilot.policy.sql

import java.util.Locale

import org.apache.spark.sql.aqepilot.decision.AnswerField
import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.aqepilot.reasons.NearestNames
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction
import org.apache.spark.sql.catalyst.expressions.{
  CaseWhen,
  Cast,
  CreateNamedStruct,
  Expression,
  If,
  IsNull,
  Literal
}
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, TreeNodeTag}
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** Lets a policy name only the fields that it decides: `named_struct('skew_factor', 3.0, 'force', true)` where
  * an answer is expected becomes the whole struct, other fields null, so that the branches of a CASE need not
  * name the same ones. A decision's main field may stand alone: 'BROADCAST' for
  * `named_struct('strategy', 'BROADCAST')`.
  */
private[policy] object StructAnswer {
  import PolicyError._
  import TextCheck.refuse

  /** The field's name, on the casts that are made here. */
  val field: TreeNodeTag[String] = TreeNodeTag[String]("aqepilot.field")

  def apply(parsed: Expression, answer: DataType): Expression = answer match {
    case struct: StructType =>
      var isStruct = false
      val completed = handedOn(parsed) {
        case f: UnresolvedFunction if named(f, "named_struct") =>
          isStruct = true
          CurrentOrigin.withOrigin(f.origin)(this.struct(f, struct))
        case other => other
      }
      if (!isStruct) completed
      else
        handedOn(completed) {
          case word @ Literal(_, wordType)
              if AnswerField.bareOf(answer).exists(_.dataType == wordType) =>
            bare(word, struct)
          case other => other
        }
    case _ => parsed
  }

  /** The struct around an answer that is its main field alone; None where the answer has another type. */
  def around(parsed: Expression, answer: DataType, is: DataType): Option[Expression] =
    (answer, AnswerField.bareOf(answer)) match {
      case (struct: StructType, Some(field)) if field.dataType == is =>
        Some(If(IsNull(parsed), Literal(null, struct), bare(parsed, struct)))
      case _ => None
    }

  private def bare(value: Expression, answer: StructType): Expression =
    CreateNamedStruct(answer.fields.toSeq.flatMap { field =>
      Seq(
        Literal(field.name),
        if (AnswerField.bareOf(answer).contains(field)) value else Literal(null, field.dataType)
      )
    })

  /** Changes the values that an expression hands on: the branches of CASE and if, the arguments of coalesce. */
  private def handedOn(e: Expression)(change: Expression => Expression): Expression = e match {
    case CaseWhen(branches, otherwise) =>
      CurrentOrigin.withOrigin(e.origin) {
        CaseWhen(
          branches.map { case (condition, value) => (condition, handedOn(value)(change)) },
          otherwise.map(handedOn(_)(change))
        )
      }
    case f: UnresolvedFunction if named(f, "if") && f.arguments.size == 3 =>
      withArguments(f, f.arguments.head +: f.arguments.tail.map(handedOn(_)(change)))
    case f: UnresolvedFunction if named(f, "coalesce") || named(f, "ifnull") || named(f, "nvl") =>
      withArguments(f, f.arguments.map(handedOn(_)(change)))
    case other => change(other)
  }

  private def withArguments(f: UnresolvedFunction, arguments: Seq[Expression]) =
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
    CreateNamedStruct(answer.fields.toSeq.flatMap { wanted =>
      val value = values.get(wanted.name).fold[Expression](Literal(null, wanted.dataType)) { v =>
        val cast = Cast(v, wanted.dataType, Some("UTC"))
        cast.setTagValue(field, wanted.name)
        cast
      }
      Seq(Literal(wanted.name), value)
    })
  }
}

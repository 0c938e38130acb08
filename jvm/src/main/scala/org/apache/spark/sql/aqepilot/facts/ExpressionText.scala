package org.apache.spark.sql.aqepilot.facts

import java.util.Locale

import scala.annotation.tailrec

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Writes an expression as text, without what differs from one run of a query to the next: names and ids of columns,
  * implicit casts, and, unless [[literal]] is another, its literals.
  */
abstract private class ExpressionText {

  /** What a column, or a lambda's variable, is called. */
  protected def name(e: NamedExpression): String

  protected def subquery(plan: LogicalPlan): String

  protected def literal(l: Literal): String = "?"

  protected def aliased(alias: Alias): String

  final protected def exprs(all: Iterable[Expression]): String = all.map(expr).mkString(", ")

  protected def expr(e: Expression): String = e match {
    case known: Literal                => literal(known)
    case column: Attribute             => name(column)
    case variable: NamedLambdaVariable => name(variable)
    case alias: Alias                  => aliased(alias)
    case outer: OuterReference         => s"outer ${expr(outer.e)}"
    case Uncast(child)                 => expr(child)
    case cast: Cast => folded(expr(cast.child), c => s"cast($c as ${cast.dataType.catalogString})")
    case in: In     => s"${expr(in.value)} in (${in.list.map(expr).distinct.mkString(", ")})"
    case s: SubqueryExpression => s"${s.getClass.getSimpleName}(${subquery(s.plan)})"
    case order: SortOrder      =>
      s"${expr(order.child)} ${order.direction.sql} ${order.nullOrdering.sql}"
    case call: AggregateExpression =>
      s"${expr(call.aggregateFunction)}${if (call.isDistinct) " distinct" else ""}" +
        call.filter.map(f => s" filter ${expr(f)}").mkString
    case frame: SpecifiedWindowFrame =>
      s"${frame.frameType.sql}(${expr(frame.lower)}, ${expr(frame.upper)})"
    case udf: UserDefinedExpression => s"udf ${udf.name}(${exprs(e.children)})"
    case field: GetStructField      =>
      s"${expr(field.child)}.${field.extractFieldName.toLowerCase(Locale.ROOT)}"
    case call: InheritAnalysisRules => inherited(call.prettyName, call.parameters.map(expr))
    case other                      =>
      val children = other.children.map(expr)
      if (children.nonEmpty && children.forall(_ == "?") && other.foldable) "?"
      else s"${other.prettyName}(${children.mkString(", ")})"
  }

  private def folded(child: String, text: String => String): String =
    if (child == "?") child else text(child)

  /** Functions that are written as others: BETWEEN is so from Spark 4, and was two comparisons before.
    */
  private def inherited(name: String, parameters: Seq[String]): String = (name, parameters) match {
    case ("between", Seq(value, low, high)) =>
      s"and(greaterthanorequal($value, $low), lessthanorequal($value, $high))"
    case _ if parameters.nonEmpty && parameters.forall(_ == "?") => "?"
    case _ => s"$name(${parameters.mkString(", ")})"
  }
}

/** What the analyser puts around an expression: other casts under ANSI, from one Spark to the next. */
private object Uncast {

  def unapply(e: Expression): Option[Expression] = e match {
    case cast: Cast if cast.getTagValue(Cast.USER_SPECIFIED_CAST).isEmpty => Some(cast.child)
    case checked: CheckOverflowInTableInsert                              => Some(checked.child)
    case known: TaggingExpression                                         => Some(known.child)
    case _                                                                => None
  }

  /** What is within all of that. */
  @tailrec def all(e: Expression): Expression = e match {
    case Uncast(child) => all(child)
    case other         => other
  }
}

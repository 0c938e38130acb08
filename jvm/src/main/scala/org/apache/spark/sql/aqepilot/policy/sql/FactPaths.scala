package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField}

private[policy] object FactPaths {

  /** The longest fact paths that an expression reads. */
  def readBy(expression: Expression): Seq[String] = reads(expression).distinct

  private def reads(e: Expression): Seq[String] =
    pathOf(e).map(Seq(_)).getOrElse(e.children.flatMap(reads))

  private def pathOf(e: Expression): Option[String] = e match {
    case a: Attribute          => Some(a.name)
    case field: GetStructField => pathOf(field.child).map(_ + "." + field.extractFieldName)
    case _                     => None
  }
}

package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}

/** An SQL function that becomes an expression of Spark's own at analysis, so that no class of ours is in any plan and
  * executors need no jar.
  */
abstract class ScalarFunction(
    val name: String,
    usage: String,
    arguments: String,
    examples: String = ""
) {
  def identifier: FunctionIdentifier = FunctionIdentifier(name)

  def info: ExpressionInfo = new ExpressionInfo(
    getClass.getName.stripSuffix("$"),
    null,
    name,
    usage,
    arguments,
    examples,
    "",
    "misc_funcs",
    "0.1.0",
    "",
    "built-in"
  )

  /** @throws org.apache.spark.sql.AnalysisException for other arguments, with what is allowed */
  def build(args: Seq[Expression]): Expression
}

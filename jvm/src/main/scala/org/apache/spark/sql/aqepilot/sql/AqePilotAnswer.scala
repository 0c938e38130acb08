package org.apache.spark.sql.aqepilot.sql

import org.apache.spark.sql.aqepilot.decision.DecisionPoints
import org.apache.spark.sql.aqepilot.policy.python.PythonText
import org.apache.spark.sql.aqepilot.policy.sql.{PolicyCompiler, ScalarFunction}
import org.apache.spark.sql.aqepilot.spark.Refusal
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  Cast,
  CreateNamedStruct,
  Expression,
  GetStructField,
  Literal,
  TryEval
}
import org.apache.spark.sql.types.{BooleanType, DataType, StringType, StructType}

/** The SQL function `aqepilot_answer(point, text, facts)`: what a policy's text answers to each row of facts.
  *
  * The text is compiled as for a decision, once for a query, and the function becomes that expression. A row on which it fails does not end the query.
  */
object AqePilotAnswer
    extends ScalarFunction(
      "aqepilot_answer",
      "_FUNC_(point, text, facts) - Returns what the SQL text of a policy answers to each row of facts, as a " +
        "struct with the field `answer`; null where it fails.",
      """
      |    Arguments:
      |      * point - a decision point, or 'when'; a constant string
      |      * text - the policy's SQL text; a constant string
      |      * facts - a struct with all facts of the point; for 'when', with `query` only
    """.stripMargin
    ) {

  /** @throws org.apache.spark.sql.AnalysisException
    *   for other arguments and for a text that is no policy, with its place in the text
    */
  override def build(args: Seq[Expression]): Expression = args match {
    case Seq(point, text, facts) =>
      answer(constant(point, "point"), constant(text, "text"), facts)
    case _ => refuse(s"$name takes 3 arguments (point, text, facts), not ${args.length}.")
  }

  private def answer(pointName: String, text: String, facts: Expression): Expression = {
    val (schema, answers) = typesOf(pointName)
    if (!DataType.equalsIgnoreNullability(facts.dataType, schema))
      refuse(
        s"$name: facts has to be a struct with all facts of $pointName, in their order: " +
          s"${schema.catalogString.take(500)}..."
      )
    if (PythonText.is(text))
      refuse(s"$name answers for SQL texts only: a Python function is asked in Python.")
    // Any fact may be missing from a log.
    PolicyCompiler.bound(text, schema.asNullable, answers: _*) match {
      case Left(e)      => refuse(s"${e.code}: ${e.message}", e.line, e.column.map(_ - 1))
      case Right(bound) =>
        val over = bound.transform { case BoundReference(i, _, _) => GetStructField(facts, i) }
        TryEval(CreateNamedStruct(Seq(Literal("answer"), over)))
    }
  }

  private def typesOf(pointName: String): (StructType, Seq[DataType]) =
    if (pointName == "when") (DecisionPoints.whenFacts, Seq(BooleanType))
    else
      PointArgument.point(pointName, "when") match {
        case Right(p)    => (p.facts, p.answer +: p.alternative.toSeq)
        case Left(wrong) => refuse(s"$name: ${wrong.message}")
      }

  private def constant(argument: Expression, what: String): String = {
    val value =
      if (argument.resolved && argument.foldable) Cast(argument, StringType).eval() else null
    if (value == null) refuse(s"$name: $what has to be a constant string.") else value.toString
  }

  private def refuse(why: String, line: Option[Int] = None, at: Option[Int] = None): Nothing =
    throw new Refusal(why, line, at)
}

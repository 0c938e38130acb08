package org.apache.spark.sql.aqepilot.policy.sql

import java.util.Locale

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.aqepilot.reasons.NearestNames
import org.apache.spark.sql.catalyst.analysis.{
  UnresolvedAttribute,
  UnresolvedExtractValue,
  UnresolvedFunction,
  UnresolvedStar
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction}
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  LambdaFunction,
  Literal,
  PlanExpression,
  UnresolvedNamedLambdaVariable,
  WindowExpression
}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** Checks a parsed text before it is analysed: every name still has its place in the text.
  *
  * Allowed are the functions of [[allowedGroups]] without [[memoryFunctions]], which make large values of small ones: a
  * policy runs in the driver. No function may read the clock, the session or chance: replay reproduces every answer.
  */
final private[policy] class TextCheck(facts: StructType) {
  import PolicyError._
  import TextCheck._

  /** Replaces `aqepilot_bytes(...)` by its literal.
    *
    * @throws Refused at the first part that is not allowed
    */
  def apply(parsed: Expression): Expression = {
    check(parsed, Set.empty, parsed.origin)
    parsed.transformUp {
      case f: UnresolvedFunction if f.nameParts.map(lower) == Seq(AqePilotBytes.name) =>
        try AqePilotBytes.build(f.arguments)
        catch { case e: AnalysisException if e.line.isEmpty => throw e.withPosition(f.origin) }
    }
  }

  private def check(e: Expression, variables: Set[String], around: Origin): Unit = {
    val at = if (e.origin.line.isDefined) e.origin else around
    e match {
      case a: UnresolvedAttribute           => checkFact(a.nameParts, variables, at)
      case v: UnresolvedNamedLambdaVariable => checkFact(v.nameParts, variables, at)
      case UnresolvedExtractValue(a: UnresolvedAttribute, Literal(field: UTF8String, _)) =>
        checkFact(a.nameParts :+ field.toString, variables, at)
      case f: UnresolvedFunction     => checkFunction(f.nameParts, at)
      case _: UnresolvedExtractValue =>
      case _: UnresolvedStar         =>
        refuse(NotScalar, "A policy is one value: name the facts instead of *.", at)
      case _: PlanExpression[_] =>
        refuse(NotScalar, s"Subqueries are not allowed: $onlyFacts", at)
      case _: AggregateExpression | _: AggregateFunction =>
        refuse(NotScalar, s"Aggregates are not allowed: $onlyFacts $arrayAdvice", at)
      case _: WindowExpression  => refuse(NotScalar, s"Windows are not allowed: $onlyFacts", at)
      case _ if isNamedLater(e) =>
        refuse(
          FunctionNotAllowed,
          "Write the names of facts and functions as they are, without IDENTIFIER(...).",
          at
        )
      case _ =>
    }
    e match {
      case LambdaFunction(body, arguments, _) =>
        val names = arguments.collect { case v: UnresolvedNamedLambdaVariable =>
          lower(v.nameParts.head)
        }
        check(body, variables ++ names, at)
      case _ => e.children.foreach(check(_, variables, at))
    }
  }

  /** Whether the analyser replaces a part by another one: `IDENTIFIER('repeat')(...)`, and its like in later Sparks.
    * A parameter (`:p`) is never replaced.
    */
  private def isNamedLater(e: Expression): Boolean =
    e.getClass.getName.startsWith("org.apache.spark.sql.catalyst.analysis.") &&
      !e.getClass.getName.endsWith("Parameter")

  private def checkFact(name: Seq[String], variables: Set[String], at: Origin): Unit = {
    val path = name.mkString(".")
    if (!variables(lower(name.head)) && !isKnown(name, facts)) {
      if (sessionNames(lower(path))) refuse(NotPure, notPure(path), at)
      val near = NearestNames.of(path, NearestNames.paths(facts))
      val advice =
        if (near.nonEmpty) s"Did you mean ${near.mkString(" or ")}?"
        else s"There are: ${siblings(name).mkString(", ")}."
      refuse(UnknownFact, s"There is no fact ${quote(path)} here. $advice", at, near)
    }
  }

  private def siblings(name: Seq[String]): Seq[String] =
    facts.fields.find(_.name.equalsIgnoreCase(name.head)) match {
      case Some(StructField(top, inner: StructType, _, _)) =>
        inner.fieldNames.toSeq.map(s"$top." + _)
      case _ => facts.fieldNames.toSeq.map(_ + ".*")
    }

  // Spark checks what follows a fact that is no struct, such as an index.
  private def isKnown(name: Seq[String], struct: StructType): Boolean =
    struct.fields.find(_.name.equalsIgnoreCase(name.head)).map(_.dataType).exists {
      case inner: StructType if name.size > 1 => isKnown(name.tail, inner)
      case _                                  => true
    }

  private def checkFunction(nameParts: Seq[String], at: Origin): Unit = {
    val name = nameParts.map(lower).mkString(".")
    val function = s"The function ${quote(name)}"
    if (name != AqePilotBytes.name) FixedSemantics.groupOf(name) match {
      case None =>
        val near = NearestNames.of(name, allowedFunctions)
        val advice = if (near.isEmpty) "" else s" Did you mean ${near.mkString(" or ")}?"
        val only = "functions of a session or a catalog may not be used."
        refuse(UnknownFunction, s"$function is not built into Spark: $only$advice", at, near)
      case Some("agg_funcs") =>
        refuse(NotScalar, s"$function is an aggregate: $onlyFacts $arrayAdvice", at)
      case Some("window_funcs") =>
        refuse(NotScalar, s"$function needs a window: $onlyFacts", at)
      case Some("generator_funcs") =>
        refuse(NotScalar, s"$function makes rows: $onlyFacts", at)
      case _ if notPureFunctions(name) => refuse(NotPure, notPure(name), at)
      case Some("datetime_funcs")      => refuse(NotPure, TextCheck.noDates, at)
      case _ if memoryFunctions(name)  =>
        refuse(
          FunctionNotAllowed,
          s"$function can fill the driver's memory: write the text without it.",
          at
        )
      case Some(group) if !allowedGroups(group) =>
        val kinds = allowedGroups.toSeq.sorted.map(_.stripSuffix("_funcs")).mkString(", ")
        refuse(FunctionNotAllowed, s"$function is not allowed: Spark's kinds $kinds are.", at)
      case _ =>
    }
  }
}

private[policy] object TextCheck {

  /** Ends the check of a text; never leaves the compiler. */
  final class Refused(val error: PolicyError) extends RuntimeException(error.message)

  def refuse(code: String, message: String, at: Origin, suggestions: Seq[String] = Nil): Nothing =
    throw new Refused(PolicyError(code, message, at.line, at.startPosition.map(_ + 1), suggestions))

  val allowedGroups: Set[String] = Set(
    "array_funcs",
    "bitwise_funcs",
    "collection_funcs",
    "conditional_funcs",
    "conversion_funcs",
    "hash_funcs",
    "json_funcs",
    "lambda_funcs",
    "map_funcs",
    "math_funcs",
    "predicate_funcs",
    "string_funcs",
    "struct_funcs"
  )

  val memoryFunctions: Set[String] = Set(
    "array_insert",
    "array_repeat",
    "flatten",
    "format_number",
    "format_string",
    "lpad",
    "printf",
    "repeat",
    "rpad",
    "sequence",
    "space"
  )

  private val sessionNames = Set(
    "current_catalog",
    "current_database",
    "current_date",
    "current_path",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "user"
  )

  // Later checks refuse these too; this list gives them the right code.
  private val notPureFunctions = sessionNames ++ Set(
    "curdate",
    "current_timezone",
    "input_file_block_length",
    "input_file_block_start",
    "input_file_name",
    "java_method",
    "monotonically_increasing_id",
    "now",
    "rand",
    "randn",
    "random",
    "randstr",
    "reflect",
    "shuffle",
    "spark_partition_id",
    "try_reflect",
    "uniform",
    "unix_timestamp",
    "uuid",
    "version"
  )

  val noDates: String =
    "Dates and times are not allowed: no fact is one, and Spark reads 'now', 'today' or '12:30' " +
      "by the clock, so that replay could not reproduce the answer."

  private val onlyFacts = "a policy is one scalar expression over the facts of one decision."
  private val arrayAdvice = "For arrays there are array_max, exists, filter, aggregate."

  private lazy val allowedFunctions = (FixedSemantics.functionNames.filter { name =>
    name.head.isLetter && !memoryFunctions(name) && !notPureFunctions(name) &&
    FixedSemantics.groupOf(name).exists(allowedGroups)
  }.toSeq :+ AqePilotBytes.name).sorted

  private def notPure(name: String) =
    s"${quote(name)} is not allowed: an answer may depend on the facts alone, not on the clock, " +
      "the session, the user or chance."

  private def quote(name: String) = s"'${ErrorText.shorten(name, 100)}'"

  private def lower(name: String) = name.toLowerCase(Locale.ROOT)
}

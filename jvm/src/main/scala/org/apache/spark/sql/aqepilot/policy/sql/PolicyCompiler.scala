package org.apache.spark.sql.aqepilot.policy.sql

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.aqepilot.decision.DecisionPoint
import org.apache.spark.sql.aqepilot.policy.{PolicyError, SqlPolicy}
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeSeq,
  BindReferences,
  Cast,
  Expression,
  Unevaluable
}
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.types.{DataType, StructType}

/** Compiles a SQL text: parses, checks, analyses, optimises and binds it, once per text, facts and types.
  *
  * Safe from any thread, with or without a session. Throws InterruptedException, and OutOfMemoryError if no thread can
  * be started; every other error is a [[PolicyError]].
  */
object PolicyCompiler {
  import PolicyError._
  import TextCheck.{Refused, refuse}

  private val MaxTextBytes = 1 << 20

  private val cache = new CompiledCache(maxEntries = 256, maxTextBytes = 8L << 20)

  /** @param facts the schema of the rows that the policy will be asked with
    * @param answers the allowed types of its answers, of which it has one; a NULL literal is always allowed
    */
  def compile(
      text: String,
      facts: StructType,
      answers: DataType*
  ): Either[PolicyError, SqlPolicy] =
    sizeError(text).toLeft(()).flatMap { _ =>
      cache.getOrElseUpdate(CompiledCache.Key(text, facts, answers)) {
        CompileThread.run(uncached(text, facts, answers))
      }
    }

  private[policy] def cached: CompiledCache = cache

  private def sizeError(text: String): Option[PolicyError] =
    if (text == null || text.trim.isEmpty)
      Some(error(Empty, "The text is empty: write a SQL expression, or NULL to leave it to Spark."))
    else if (text.length > MaxTextBytes || text.getBytes(UTF_8).length > MaxTextBytes)
      Some(error(TooLong, s"The text is longer than the $MaxTextBytes bytes allowed."))
    else None

  /** The same at a decision point. */
  def compile(text: String, point: DecisionPoint[_]): Either[PolicyError, SqlPolicy] =
    compile(text, point.facts, point.answer +: point.alternative.toSeq: _*)

  /** The same as an expression of Spark's own over rows of facts, for a query over many.
    *
    * @return
    *   bound to the fields of a facts row by their places; errors are thrown by it
    */
  def bound(text: String, facts: StructType, answers: DataType*): Either[PolicyError, Expression] =
    sizeError(text).toLeft(()).flatMap { _ =>
      CompileThread.run(orError(bind(text, facts, answers).expression))
    }

  private def uncached(
      text: String,
      facts: StructType,
      answers: Seq[DataType]
  ): Either[PolicyError, SqlPolicy] = orError {
    val made = bind(text, facts, answers)
    SqlPolicy(text, made.answer, made.expression, made.reads)
  }

  private def orError[T](body: => T): Either[PolicyError, T] =
    try FixedSemantics.under(Right(body))
    catch {
      case e: Refused           => Left(e.error)
      case e: ParseException    => Left(syntax(e))
      case e: AnalysisException => Left(errorOf(codeOf(e), e))
      case e: OutOfMemoryError  =>
        Left(error(
          TooComplex,
          s"A constant part of the expression fails: ${ErrorText.sentence(e)}."
        ))
      case _: StackOverflowError =>
        Left(error(TooComplex, "The expression is nested too deeply: write it flatter."))
      case e: ArithmeticException      => Left(constantFails(e))
      case e: IllegalArgumentException => Left(constantFails(e))
      case e: RuntimeException if e.isInstanceOf[org.apache.spark.SparkThrowable] =>
        Left(constantFails(e))
      case e: Throwable =>
        Left(error(InternalError, s"${e.getClass.getSimpleName}: ${ErrorText.sentence(e)}"))
    }

  /** @param reads the fact paths that the optimised expression reads */
  final private case class Bound(answer: DataType, expression: Expression, reads: Seq[String])

  private def bind(text: String, facts: StructType, answers: Seq[DataType]): Bound = {
    TextNesting.check(text)
    val parsed = FixedSemantics.parse(text)
    ExpressionSize.check(parsed)
    val checked = StructAnswer(new TextCheck(facts)(parsed), answers.head)
    val relation = FixedSemantics.relation(facts)
    val analysed = {
      val as = FixedSemantics.analyze(checked, relation)
      StructAnswer
        .around(checked, answers.head, single(as, relation, parsed.origin).dataType)
        .fold(as)(FixedSemantics.analyze(_, relation))
    }
    val answer = AnalysedCheck(single(analysed, relation, parsed.origin), answers, parsed.origin)
    val optimised = single(FixedSemantics.optimize(analysed), relation, parsed.origin)
    ExpressionSize.check(optimised)
    val cast =
      if (optimised.dataType == answer) optimised else Cast(optimised, answer, Some("UTC"))
    val bound = BindReferences.bindReference(cast, AttributeSeq(relation.output))
    bound.find(_.isInstanceOf[Unevaluable]).foreach { part =>
      val message = s"'${part.prettyName}' cannot be evaluated on one row of facts."
      refuse(InvalidExpression, message, part.origin)
    }
    Bound(answer, bound, FactPaths.readBy(optimised))
  }

  /** The one expression of a chain of projections over the facts; Spark 4 puts what is used twice
    * (the operand of BETWEEN) into a projection of its own.
    */
  private def single(plan: LogicalPlan, relation: FactsRelation, at: Origin): Expression = {
    def notScalar = refuse(
      NotScalar,
      "A policy is one scalar expression over the facts of one decision: no aggregates, windows " +
        "or functions that make rows.",
      at
    )
    def inlined(e: Expression, below: LogicalPlan): Expression = below match {
      case `relation`          => e
      case Project(list, next) =>
        val byId = list.collect { case a: Alias => a.exprId -> a.child }.toMap
        val merged = e.transform { case a: Attribute => byId.getOrElse(a.exprId, a) }
        ExpressionSize.check(merged)
        inlined(merged, next)
      case _ => notScalar
    }
    plan match {
      case Project(Seq(Alias(child, _)), below)      => inlined(child, below)
      case Project(Seq(attribute: Attribute), below) => inlined(attribute, below)
      case _                                         => notScalar
    }
  }

  private def codeOf(e: AnalysisException): String =
    if (e.errorClass.exists(c => c.startsWith("FIELD_NOT_FOUND"))) UnknownFact
    else InvalidExpression

  // Spark's grammar takes SELECT 'a' for a typed literal, as DATE '2024-01-01' is one.
  private def syntax(e: ParseException): PolicyError = {
    val error = errorOf(Syntax, e)
    if (!error.message.contains("of the type \"SELECT\"")) error
    else error.copy(message = "A policy is an expression without SELECT; it has no subqueries.")
  }

  private def errorOf(code: String, e: AnalysisException): PolicyError =
    PolicyError(code, ErrorText.ofMessage(e.message), e.line, e.startPosition.map(_ + 1), Nil)

  private def constantFails(e: Throwable): PolicyError =
    error(
      ConstantFails,
      s"A constant part of the expression always fails: ${ErrorText.sentence(e)}"
    )

  private def error(code: String, message: String): PolicyError =
    PolicyError(code, message, None, None, Nil)
}

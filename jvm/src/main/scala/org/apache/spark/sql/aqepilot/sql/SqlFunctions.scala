package org.apache.spark.sql.aqepilot.sql

import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.policy.python.Caller
import org.apache.spark.sql.aqepilot.policy.sql.PolicyCompiler
import org.apache.spark.sql.aqepilot.policy.{PolicyError, PolicyTexts}
import org.apache.spark.sql.aqepilot.reasons.{NearestNames, Problem}
import org.apache.spark.sql.aqepilot.record.DecisionLog
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  Cast,
  Expression,
  ExpressionInfo,
  GenericInternalRow
}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The table functions through which PySpark, SQL, JDBC and Spark Connect ask what goes on.
  *
  * Each gives a relation of the rows at the time of analysis, so executors need nothing of ours.
  */
final class SqlFunction(
    val name: String,
    val usage: String,
    val parameters: Seq[String],
    schema: StructType,
    rows: Seq[String] => Seq[Seq[Any]]
) {

  val identifier: FunctionIdentifier = FunctionIdentifier(name)

  val info: ExpressionInfo = new ExpressionInfo(
    getClass.getName,
    null,
    name,
    usage,
    "",
    "",
    "",
    "misc_funcs",
    "3.5.0",
    "",
    "built-in"
  )

  /** Where the jar is another Spark's, says so: what it calls may not be there. */
  def build(arguments: Seq[Expression]): LogicalPlan =
    try relation(arguments)
    catch {
      case e: LinkageError =>
        throw new IllegalArgumentException(
          s"$name: ${Health.wrongJar.getOrElse(FailOpen.short(e))}"
        )
    }

  private def relation(arguments: Seq[Expression]): LogicalPlan = {
    if (arguments.length != parameters.length) {
      throw new IllegalArgumentException(
        s"$name takes ${parameters.length} arguments (${parameters.mkString(", ")}), got " +
          arguments.length
      )
    }
    val values = arguments.zip(parameters).map { case (argument, parameter) =>
      if (!argument.foldable)
        throw new IllegalArgumentException(s"$name: $parameter must be a constant")
      Option(Cast(argument, StringType).eval()).map(_.toString).orNull
    }
    val output = schema.map(f => AttributeReference(f.name, f.dataType)())
    LocalRelation(output, rows(values).map(r => new GenericInternalRow(r.map(catalyst).toArray)))
  }

  private def catalyst(value: Any): Any = value match {
    case s: String => UTF8String.fromString(s)
    case Some(v)   => catalyst(v)
    case None      => null
    case s: Seq[_] => new GenericArrayData(s.map(catalyst).toArray[Any])
    case v         => v
  }
}

object SqlFunctions {

  private def strings(names: String*): StructType =
    StructType(names.map(StructField(_, StringType)))

  val status: SqlFunction = new SqlFunction(
    "aqepilot_status",
    "aqepilot_status() - versions, health of each decision point, policies, settings, problems, counters.",
    Nil,
    strings("kind", "name", "value", "detail"),
    _ => Status.rows
  )

  val decisions: SqlFunction = new SqlFunction(
    "aqepilot_decisions",
    "aqepilot_decisions() - the newest decisions of this session, and what became of them.",
    Nil,
    DecisionRow.columns.schema,
    _ => decisionRows
  )

  val check: SqlFunction = new SqlFunction(
    "aqepilot_check",
    "aqepilot_check(point, text) - what is wrong with a policy's text; no row when it is good. " +
      "The point 'when' checks the text of a `when`.",
    Seq("point", "text"),
    StructType(
      Seq(
        StructField("code", StringType),
        StructField("message", StringType),
        StructField("line", IntegerType),
        StructField("column", IntegerType),
        StructField("suggestions", ArrayType(StringType))
      )
    ),
    arguments => checked(arguments(0), arguments(1)).toSeq.map(errorRow)
  )

  val decide: SqlFunction = new SqlFunction(
    "aqepilot_decide",
    "aqepilot_decide(point, text, facts) - what a policy's text would decide on these facts (JSON, " +
      "missing facts are null), under the session's guard rails: for tests of policies.",
    Seq("point", "text", "facts"),
    strings("answer", "decision", "reason", "detail"),
    arguments => Seq(Rehearsal.decide(arguments(0), arguments(1), arguments(2)))
  )

  val legal: SqlFunction = new SqlFunction(
    "aqepilot_legal",
    "aqepilot_legal(point, facts, most) - the answers that would be legal on these facts (JSON, as the record " +
      "has them), under the session's guard rails, at most so many.",
    Seq("point", "facts", "most"),
    strings("answer"),
    arguments => Rehearsal.legal(arguments(0), arguments(1), number(arguments(2))).map(Seq(_))
  )

  val legalAnswers: SqlFunction = new SqlFunction(
    "aqepilot_legal_answers",
    "aqepilot_legal_answers() - the answers that would be legal at the newest decisions of this session, at most " +
      s"$MaxLegal of each decision.",
    Nil,
    StructType(
      Seq(
        StructField("decision_id", LongType),
        StructField("point", StringType),
        StructField("subject", StringType),
        StructField("answer", StringType)
      )
    ),
    _ =>
      for {
        (d, _) <- kept
        facts <- d.facts.toSeq
        answer <- Rehearsal.legal(d.point, facts, MaxLegal)
      } yield Seq[Any](d.decisionId, d.point, d.subject, answer)
  )

  /** Of each decision. */
  private def MaxLegal = 100

  val all: Seq[SqlFunction] = Seq(status, decisions, check, decide, legal, legalAnswers)

  /** Whether each session is shown what concerns the others. */
  private[aqepilot] def everyone: Boolean =
    AqePilotConf.AllSessions.inForce

  private def decisionRows: Seq[Seq[Any]] =
    kept.map(DecisionRow.columns.row(_).toSeq(DecisionRow.columns.schema))

  private def kept: Seq[DecisionRow.Kept] = Sessions.active.toSeq.flatMap { session =>
    DecisionLog
      .of(session.sparkContext)
      .decisions(if (everyone) None else Some(session.sessionUUID))
  }

  private def number(argument: String): Int =
    try argument.toInt
    catch {
      case _: NumberFormatException =>
        throw new IllegalArgumentException(
          s"aqepilot_legal: most has to be a whole number, not $argument"
        )
    }

  private def checked(point: String, text: String): Option[PolicyError] =
    if (text == null) Some(PolicyError("EMPTY", "The text is null.", None, None, Nil))
    else if (point == "when")
      PolicyCompiler.compile(text, DecisionPoints.whenFacts, BooleanType).left.toOption
    else
      PointArgument.point(point, "when") match {
        case Right(p)    => PolicyTexts.compile(text, p, Caller.session(SQLConf.get)).left.toOption
        case Left(wrong) =>
          val names = if (wrong.code == Problem.PolicyPointUnknown) DecisionPoints.names else Nil
          val nearest = NearestNames.of(String.valueOf(point), names)
          Some(PolicyError(wrong.code, wrong.message.capitalize, None, None, nearest))
      }

  private def errorRow(e: PolicyError): Seq[Any] =
    Seq(e.code, e.message, e.line, e.column, e.suggestions)
}

package org.apache.spark.sql.aqepilot

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.control.Control
import org.apache.spark.sql.aqepilot.experiment.{Definition, Experiments, Running}
import org.apache.spark.sql.aqepilot.log.{DecisionLog, Redaction}
import org.apache.spark.sql.aqepilot.python.{Caller, PythonOwner, PythonPolicy, PythonWorkers}
import org.apache.spark.sql.aqepilot.rewrite.CostEvaluatorInstall
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  Cast,
  Expression,
  ExpressionInfo,
  GenericInternalRow
}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.util.{DateTimeUtils, GenericArrayData}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import com.fasterxml.jackson.databind.ObjectMapper
import io.aqepilot.decision._
import io.aqepilot.policy.{NearestNames, PolicyCompiler, PolicyError}

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
    StructType(
      Seq(
        StructField("time", TimestampType),
        StructField("decision_id", LongType),
        StructField("session_id", StringType),
        StructField("execution_id", LongType),
        StructField("fingerprint", StringType),
        StructField("point", StringType),
        StructField("join_id", LongType),
        StructField("side", StringType),
        StructField("tables", StringType),
        StructField("facts_id", StringType),
        StructField("facts", StringType),
        StructField("policy", StringType),
        StructField("revision", StringType),
        StructField("mode", StringType),
        StructField("answer", StringType),
        StructField("spark_answer", StringType),
        StructField("spark_strategy", StringType),
        StructField("applied", BooleanType),
        StructField("reason", StringType),
        StructField("detail", StringType),
        StructField("asked_us", DoubleType),
        StructField("fate", StringType),
        StructField("final_strategy", StringType),
        StructField("subject", StringType)
      )
    ),
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

  val all: Seq[SqlFunction] = Seq(status, decisions, check, decide)

  /** Whether each session is shown what concerns the others. */
  private[aqepilot] def everyone: Boolean =
    AqePilotConf.isTrue(AqePilotConf.getSubmitted(AqePilotConf.AllSessions))

  private def decisionRows: Seq[Seq[Any]] = Sessions.active.toSeq.flatMap { session =>
    DecisionLog
      .get(session.sparkContext)
      .decisions(if (everyone) None else Some(session.sessionUUID))
      .map { case (d, fate) =>
        Seq[Any](
          DateTimeUtils.millisToMicros(d.time),
          d.decisionId,
          d.sessionId,
          d.executionId,
          d.fingerprint,
          d.point,
          d.joinId,
          d.side,
          d.tables,
          d.factsId,
          d.facts,
          d.policy,
          d.revision,
          d.mode,
          d.answer,
          d.sparkAnswer,
          d.sparkStrategy,
          d.applied,
          d.reason,
          d.detail,
          d.askedMicros,
          fate.map(_.fate),
          fate.flatMap(_.finalStrategy),
          d.subject
        )
      }
  }

  private def checked(point: String, text: String): Option[PolicyError] =
    if (text == null) Some(PolicyError("EMPTY", "The text is null.", None, None, Nil))
    else if (point == "when")
      PolicyCompiler.compile(text, DecisionPoints.whenFacts, BooleanType).left.toOption
    else
      DecisionPoints.named(point) match {
        case Some(p) => PolicyTexts.compile(text, p, Caller.session(SQLConf.get)).left.toOption
        case None    =>
          Some(
            PolicyError(
              Problem.PolicyPointUnknown,
              s"No decision point is named '$point'; there are: " +
                s"${(DecisionPoints.names :+ "when").mkString(", ")}.",
              None,
              None,
              NearestNames.of(String.valueOf(point), DecisionPoints.names)
            )
          )
      }

  private def errorRow(e: PolicyError): Seq[Any] =
    Seq(e.code, e.message, e.line, e.column, e.suggestions)
}

/** What `aqepilot_status()` shows. */
private object Status {

  private val mapper = new ObjectMapper()

  def rows: Seq[Seq[Any]] = if (Health.isRightJar) live else versions ++ wrong

  private def versions: Seq[Seq[Any]] = Seq(
    row("version", "aqepilot", Health.build.version),
    row("jar", "path", Health.jars.mkString(",")),
    row("spark", "built_for", Health.build.sparkBuiltFor, s"Scala ${Health.build.scala}"),
    row(
      "spark",
      "running",
      Health.sparkVersion,
      s"Scala ${scala.util.Properties.versionNumberString}"
    )
  )

  /** Of a jar that was built for another Spark minor. */
  private def wrong: Seq[Seq[Any]] =
    DecisionPoints.all.map(p => row("point", p.name, "off", Health.reasonOff(p).orNull)) ++
      Health.problems(PolicySet.empty).map(p => row("problem", p.code, null, p.message))

  private def live: Seq[Seq[Any]] = {
    lazy val session = Sessions.active
    lazy val conf = SQLConf.get
    lazy val set = PolicySet.of(conf)
    part("version")(versions) ++
      part("mode") {
        val mode = conf.getConfString(AqePilotConf.Mode.key, AqePilotConf.Mode.default.get)
        Seq(row("mode", "mode", Mode.of(mode).name))
      } ++
      part("run")(session.toSeq.flatMap(s => run(conf, s.sparkContext))) ++
      part("experiment")(
        session.flatMap(s => Experiments.of(s.sparkContext)).toSeq.flatMap(experiment(_, conf))
      ) ++
      part("control")(session.flatMap(s => Control.of(s.sparkContext)).toSeq.flatMap(control)) ++
      part("point")(DecisionPoints.all.map { p =>
        val off = Health.reasonOff(p).orElse(reasonOffHere(p, conf))
        row(
          "point",
          p.name,
          if (off.isEmpty) "live" else "off",
          off.getOrElse("beside " + p.builtIn)
        )
      }) ++
      part("policy")(set.policies.map(p =>
        row(
          "policy",
          s"${p.name}.${p.point.name}",
          if (p.error.isDefined) "error" else p.mode.name,
          detail(p)
        )
      )) ++
      part("setting")(AqePilotConf.settings.map { s =>
        val value = conf.getConfString(s.key, null)
        row(
          "setting",
          s.key,
          Option(value).orElse(s.default).orNull,
          if (value == null) "default" else "set"
        )
      }) ++
      part("guard")(session.toSeq.flatMap { s =>
        val guards = Guardrails.of(conf, s.sparkContext)
        Seq(
          row("guard", "max_broadcast_bytes", guards.maxBroadcastBytes.toString, "in force"),
          row("guard", "max_hash_build_bytes", guards.maxHashBuildBytes.toString, "in force"),
          row("guard", "growth", guards.growth.toString, "in force")
        )
      }) ++
      part("python")(python(conf, set)) ++
      problems(Health.problems(set)) ++
      problems(session.flatMap(s => Control.of(s.sparkContext)).toSeq.flatMap(_.problems)) ++
      problems(AqePilotConf.problems(conf.getAllConfs)) ++
      problems(
        session.flatMap(s => Experiments.of(s.sparkContext)).toSeq.flatMap(_.definition.problems)
      ) ++
      problems(set.problems) ++
      problems(session.toSeq.flatMap(s => Guardrails.problems(conf, s.sparkContext))) ++
      part("counter")(session.toSeq.flatMap(s =>
        DecisionLog.get(s.sparkContext).counters.map { case (name, count) =>
          row("counter", name, count.toString)
        }
      ))
  }

  private def run(conf: SQLConf, sc: SparkContext): Seq[Seq[Any]] = {
    val found = Runs.of(conf, sc)
    Seq(
      row("run", "job", found.job.value, found.job.source),
      row("run", "run", found.run.value, found.run.source),
      row(
        "run",
        "attempt",
        found.attempt.map(_.value.toString).orNull,
        Runs.limit(sc).map(_._2).orElse(found.attempt.map(_.source)).orNull
      )
    )
  }

  private def experiment(of: Running, conf: SQLConf): Seq[Seq[Any]] = {
    val place = Experiments.place(conf)
    val unit = place.flatMap(_.assigned)
    Seq(
      row(
        "experiment",
        "name",
        AqePilotConf.getSubmitted(Definition.Name).orNull,
        if (of.definition.experiment.isEmpty) "it does not run" else null
      ),
      row(
        "experiment",
        "arm",
        place.map(_.arm.name).orNull,
        unit.map(_.state).getOrElse("outside")
      ),
      row(
        "experiment",
        "unit",
        unit.map(_.unit).orNull,
        unit.flatMap(u => of.stopped(u.arm)).orNull
      )
    )
  }

  private def control(c: Control): Seq[Seq[Any]] =
    row("control", "file", c.path, c.problem.orNull) +:
      row("control", "version", c.version.fold("unknown")(_.toString)) +:
      row("control", "age_ms", c.age.fold("unknown")(_.toString)) +:
      c.limits.rules.map(rule => row("control", "rule", rule.mode.name, rule.toString))

  private def problems(found: => Seq[Problem]): Seq[Seq[Any]] =
    part("problem")(found.map(p => row("problem", p.code, null, p.message)))

  /** What a vendor's Spark lacks for some rows, it may have for the others. */
  private def part(kind: String)(rows: => Seq[Seq[Any]]): Seq[Seq[Any]] =
    FailOpen.recover("status") { e =>
      Seq(row(kind, Reason.InternalError.code, null, FailOpen.short(e)))
    }(rows)

  private def reasonOffHere(p: DecisionPoint, conf: => SQLConf): Option[String] =
    FailOpen.recover("status")(e => Option(FailOpen.short(e)))(
      CostEvaluatorInstall.reasonOff(p, conf)
    )

  /** The application's functions and the session's own. */
  private def python(conf: SQLConf, set: PolicySet): Seq[Seq[Any]] = {
    val named = set.policies.flatMap(_.compiled.toOption).collect { case p: PythonPolicy =>
      p.owner
    }
    val own = named ++ AqePilotConf.get(conf, AqePilotConf.PythonToken).map(PythonOwner.Session(_))
    val redact = Redaction.ofTexts(conf)
    PythonWorkers
      .active(owner =>
        SqlFunctions.everyone || owner == PythonOwner.Application || own.contains(owner)
      )
      .flatMap(_.status(SqlFunctions.everyone))
      .map { case (name, state, detail) =>
        row("python", name, state, Option(detail).map(redact).orNull)
      }
  }

  private def row(kind: String, name: String, value: String, detail: String = null): Seq[Any] =
    Seq(kind, name, value, detail)

  private def detail(p: NamedPolicy): String = {
    val json = mapper.createObjectNode()
    json.put("revision", p.revision).put("source", p.source).put("text", p.text)
    p.when.foreach(json.put("when", _))
    p.error.foreach(e => json.put("error", e.message))
    p.limit.foreach(json.put("limit", _))
    mapper.writeValueAsString(json)
  }
}

package org.apache.spark.sql.aqepilot.sql

import java.time.Instant

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.aqepilot.spark.engines.Engine
import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Guardrails, Health}
import org.apache.spark.sql.aqepilot.facts.Runs
import org.apache.spark.sql.aqepilot.history.History
import org.apache.spark.sql.aqepilot.points.cost_evaluation.CostEvaluatorInstall
import org.apache.spark.sql.aqepilot.policy.python.{PythonOwner, PythonPolicy, PythonWorkers}
import org.apache.spark.sql.aqepilot.policy.{NamedPolicy, PolicySet}
import org.apache.spark.sql.aqepilot.reasons.{Problem, Reason}
import org.apache.spark.sql.aqepilot.record.{DecisionLog, Shown}
import org.apache.spark.sql.aqepilot.run.{Control, Experiments, PoliciesInForce, Running}
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, ExperimentConf, Mode, SettingProblems}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions}
import org.apache.spark.sql.internal.SQLConf

/** What `aqepilot_status()` shows, to every session: Spark's redaction goes over all that somebody wrote. */
private[aqepilot] object Status {

  private val mapper = new ObjectMapper()

  /** Of more there is only the number. */
  private val MaxHeld = 20

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
    DecisionPoints.names.map(p => row("point", p, "off", Health.reasonOff(p).orNull)) ++
      Health.problems(Set.empty).map(p => row("problem", p.code, null, p.message))

  private def live: Seq[Seq[Any]] = {
    lazy val session = Sessions.active
    lazy val conf = SQLConf.get
    lazy val set = PoliciesInForce.of(conf)
    lazy val shown = Shown(session.map(_.sparkContext.conf), conf)
    part("version")(versions) ++
      part("mode") {
        val mode = conf.getConfString(AqePilotConf.Mode.key, AqePilotConf.Mode.default.get)
        Seq(row("mode", "mode", Mode.of(mode).name))
      } ++
      part("run")(session.toSeq.flatMap(s => run(conf, s.sparkContext)).map(texts(shown))) ++
      part("experiment")(
        session.flatMap(s => Experiments.of(s.sparkContext)).toSeq.flatMap(experiment(_, conf))
          .map(texts(shown))
      ) ++
      part("control")(session.flatMap(s => Control.of(s.sparkContext)).toSeq.flatMap(control)
        .map(texts(shown))) ++
      part("history")(session.flatMap(s => History.of(s.sparkContext)).toSeq.flatMap(history)
        .map(texts(shown))) ++
      part("point")(DecisionPoints.names.map { name =>
        val off = Health.reasonOff(name).orElse(reasonOffHere(name, conf))
        row(
          "point",
          name,
          if (off.isEmpty) "live" else "off",
          off.orElse(DecisionPoints.named(name).map("beside " + _.builtIn)).orNull
        )
      }) ++
      part("policy")(set.policies.map(p =>
        row(
          "policy",
          s"${p.name}.${p.point.name}",
          if (p.error.isDefined) "error" else p.mode.name,
          detail(p, shown)
        )
      )) ++
      part("setting")(AqePilotConf.settings.map { s =>
        val value = conf.getConfString(s.key, null)
        row(
          "setting",
          s.key,
          Option(value).map(shown.setting(s.key, _)).orElse(s.default).orNull,
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
      part("python")(python(conf, set).map(texts(shown))) ++
      problems(shown)(Health.problems(set.points)) ++
      problems(shown)(DecisionPoints.names.filter(set.points.contains).flatMap { name =>
        if (behindEngine.contains(name))
          session.flatMap(Engine.reasonFirst).map(why => Health.pointOff(name, why))
        else None
      }) ++
      problems(shown)(session.flatMap(s => Control.of(s.sparkContext)).toSeq.flatMap(_.problems)) ++
      problems(shown)(session.flatMap(s => History.of(s.sparkContext)).toSeq.flatMap(_.problems)) ++
      problems(shown)(SettingProblems.of(conf.getAllConfs, DecisionPoints.names)) ++
      problems(shown)(
        session.flatMap(s => Experiments.of(s.sparkContext)).toSeq.flatMap(_.definition.problems)
      ) ++
      problems(shown)(set.problems) ++
      problems(shown)(session.toSeq.flatMap(s => Guardrails.problems(conf, s.sparkContext))) ++
      part("counter")(session.toSeq.flatMap(s =>
        DecisionLog.of(s.sparkContext).counters.map { case (name, count) =>
          row("counter", name, count.toString)
        }
      ))
  }

  private def run(conf: SQLConf, sc: SparkContext): Seq[Seq[Any]] = {
    val run = Runs.of(conf, sc)
    Seq(
      row("run", "job", run.job.value, run.job.source),
      row("run", "run", run.run.value, run.run.source),
      row(
        "run",
        "attempt",
        run.attempt.map(_.value.toString).orNull,
        Runs.limit(sc).map(_._2).orElse(run.attempt.map(_.source)).orNull
      )
    )
  }

  private def experiment(running: Running, conf: SQLConf): Seq[Seq[Any]] = {
    val place = Experiments.place(conf)
    val unit = place.flatMap(_.assigned)
    Seq(
      row(
        "experiment",
        "name",
        ExperimentConf.Name.submitted.orNull,
        if (running.definition.experiment.isEmpty) "it does not run" else null
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
        unit.flatMap(u => running.stopped(u.arm)).orNull
      )
    )
  }

  private def control(c: Control): Seq[Seq[Any]] =
    row("control", "file", c.path, c.problem.orNull) +:
      row("control", "version", c.version.fold("unknown")(_.toString)) +:
      row("control", "age_ms", c.age.fold("unknown")(_.toString)) +:
      c.limits.rules.map(rule => row("control", "rule", rule.mode.name, rule.toString))

  private def history(h: History): Seq[Seq[Any]] = {
    val pack = h.path.toSeq.flatMap { path =>
      val held = h.held
      Seq(
        row("history", "file", path, h.problem.orNull),
        row("history", "signatures", h.signatures.toString),
        row("history", "age_ms", h.age.fold("unknown")(_.toString)),
        row("history", "held", held.size.toString)
      ) ++ held.take(MaxHeld).map { one =>
        val until = Instant.ofEpochMilli(one.until)
        row("history", "held_signature", f"${one.signature}%016x", s"until $until: ${one.reason}")
      }
    }
    pack ++ h.ownSignatures.map(n => row("history", "own_signatures", n.toString))
  }

  private def problems(shown: => Shown)(problems: => Seq[Problem]): Seq[Seq[Any]] =
    part("problem")(problems.map(p => row("problem", p.code, null, shown.message(p.message))))

  /** A row's value and detail as they may be shown. */
  private def texts(shown: Shown)(row: Seq[Any]): Seq[Any] =
    row.take(2) ++ row.drop(2).map { case text: String => shown.text(text); case other => other }

  /** What a vendor's Spark lacks for some rows, it may have for the others. */
  private def part(kind: String)(rows: => Seq[Seq[Any]]): Seq[Seq[Any]] =
    FailOpen.recover("status") { e =>
      Seq(row(kind, Reason.InternalError.code, null, FailOpen.short(e)))
    }(rows)

  private def reasonOffHere(point: String, conf: => SQLConf): Option[String] =
    FailOpen.recover("status")(e => Option(FailOpen.short(e))) {
      if (point == DecisionPoints.CostEvaluation) CostEvaluatorInstall.reasonOff(conf)
      else if (behindEngine.contains(point)) Sessions.active.flatMap(Engine.reasonFirst)
      else None
    }

  /** The points that decide on operators, by rules that prepare stages. */
  private val behindEngine = Set(DecisionPoints.SkewJoin, DecisionPoints.ShufflePartitions)

  /** The application's functions and the session's own. */
  private def python(conf: SQLConf, set: PolicySet): Seq[Seq[Any]] = {
    val named = set.policies.flatMap(_.compiled.toOption).collect { case p: PythonPolicy =>
      p.owner
    }
    val own = named ++ AqePilotConf.PythonToken.in(conf).map(PythonOwner.Session(_))
    PythonWorkers
      .active(owner =>
        SqlFunctions.everyone || owner == PythonOwner.Application || own.contains(owner)
      )
      .flatMap(_.status(SqlFunctions.everyone))
      .map { case (name, state, detail) =>
        row("python", name, state, detail)
      }
  }

  private def row(kind: String, name: String, value: String, detail: String = null): Seq[Any] =
    Seq(kind, name, value, detail)

  private def detail(p: NamedPolicy, shown: Shown): String = {
    def part(last: String, text: String) =
      shown.setting(s"${AqePilotConf.PolicyPrefix}${p.name}.$last", text)
    val json = mapper.createObjectNode()
    val text = part(p.point.name, p.text)
    val when = p.when.map(part("when", _))
    json.put("revision", p.revision).put("source", p.source).put("text", text)
    when.foreach(json.put("when", _))
    p.error.foreach { e =>
      // An error quotes the text that it is about.
      val isHidden = (when.toSeq :+ text).contains(Shown.Hidden)
      json.put("error", if (isHidden) Shown.Hidden else shown.message(e.message))
    }
    p.limit.foreach(limit => json.put("limit", shown.message(limit)))
    mapper.writeValueAsString(json)
  }
}

package org.apache.spark.sql.aqepilot.ui

import scala.xml.{Node, Text}

import org.apache.spark.SparkConf
import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.reasons.{Problem, Remedy}
import org.apache.spark.sql.aqepilot.record.Shown
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, SettingProblems}
import org.apache.spark.sql.aqepilot.spark.Servlets
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.ui.{UIUtils, WebUIPage}

import io.aqepilot.log.{AqePilotControl, AqePilotExperiment, AqePilotPolicyLoaded}

/** What is in force in an application, and the queries with decisions. */
final private[ui] class OverviewPage(tab: RecordTab) extends WebUIPage("") {
  import Html._

  private val MostRows = 200

  override def render(request: Servlets.Request): Seq[Node] =
    tab.framed(request, "aqepilot") {
      problems ++ policies ++ history ++ control ++ experiments ++ queries(request) ++ settings
    }

  private def listing[T](headers: Seq[String], rows: Seq[T])(cells: T => Seq[Seq[Node]]) = {
    val more = rows.size - MostRows
    UIUtils.listingTable[T](
      headers,
      row => <tr>{cells(row).map(cell => <td>{cell}</td>)}</tr>,
      rows.take(MostRows)
    ) ++ (if (more > 0) <p>{s"${number(more.toLong)} older ones are left out."}</p> else Nil)
  }

  private def policies: Seq[Node] = {
    // A policy is loaded by each session that asks it.
    val loaded = tab.record.policies.groupBy(p => p.copy(time = 0, sessionId = "", user = ""))
      .values.map(same => same.head -> same.size).toSeq
      .sortBy { case (p, _) => (p.policy, p.point, -p.time) }
    section(
      "Policies",
      if (loaded.isEmpty) <p>No session has loaded a policy.</p>
      else
        listing(
          Seq("Policy", "Point", "Mode", "Source", "Revision", "Text", "Asked when", "Sessions"),
          loaded
        ) { case (p, sessions) =>
          Seq(
            Text(p.policy),
            code(p.point),
            mode(p),
            Text(p.source),
            code(p.revision),
            long(p.text),
            p.when.fold(orDash(None))(long),
            Text(number(sessions.toLong))
          )
        }
    )
  }

  private def mode(p: AqePilotPolicyLoaded): Seq[Node] =
    Text(if (p.error.isDefined) "error" else p.mode) ++
      p.limit.map(why => <div>{s"limited: $why"}</div>)

  private def history: Seq[Node] =
    ours.collectFirst { case (AqePilotConf.History.key, pack) => pack }
      .fold(Seq.empty[Node])(pack => section("History", <p>{code(pack)}</p>))

  private def control: Seq[Node] = tab.record.control.headOption.fold(Seq.empty[Node]) { now =>
    val earlier = tab.record.control.drop(1)
    section(
      "Control file",
      <p>{code(now.path)}{s", ${version(now)}, read at ${UIUtils.formatDate(now.time)}: "}{
        rules(now)
      }</p> ++
        (if (earlier.isEmpty) Nil
         else
           fold(
             Text(count(earlier.size.toLong, "earlier reading")),
             listing(Seq("Time", "Version", "Rules", "Problem"), earlier) { e =>
               Seq(
                 Text(UIUtils.formatDate(e.time)),
                 orDash(e.version.map(_.toString)),
                 rules(e),
                 orDash(e.problem)
               )
             }
           ))
    )
  }

  private def version(e: AqePilotControl) = e.version.fold("no version")(v => s"version $v")

  private def rules(e: AqePilotControl): Seq[Node] =
    if (e.rules.isEmpty) Text("no rule holds") else <ul>{e.rules.map(r => <li>{r}</li>)}</ul>

  private def experiments: Seq[Node] = {
    val units = tab.record.units
    if (units.isEmpty) Nil
    else
      section(
        "Experiments",
        listing(
          Seq("Experiment", "Arms", "Unit", "Arm", "State", "Decided by", "Job", "Run", "Detail"),
          units
        )(unit)
      )
  }

  private def unit(e: AqePilotExperiment): Seq[Seq[Node]] = Seq(
    Text(e.experiment),
    Text(e.arms),
    Text(s"${e.unit} (${e.unitKind})"),
    Text(e.arm),
    Text(e.what),
    Text(e.metric),
    Text(e.job),
    Text(e.run + e.attempt.fold("")(n => s", attempt $n")),
    e.detail.fold(orDash(None))(long)
  )

  private def settings: Seq[Node] = {
    val all = ours
    if (all.isEmpty) Nil
    else
      section(
        "Settings",
        fold(
          Text(s"${count(all.size.toLong, "setting")} submitted"),
          listing(Seq("Setting", "Value"), all) { case (key, value) => Seq(code(key), long(value)) }
        )
      )
  }

  /** As they may be shown. */
  private def ours: Seq[(String, String)] = {
    val shown = showing
    tab.submitted.toSeq.filter(_._1.startsWith(AqePilotConf.Prefix)).sorted.map {
      case (key, value) => key -> shown.setting(key, value)
    }
  }

  private def showing: Shown =
    Shown(Some(new SparkConf(false).setAll(tab.submitted)), new SQLConf)

  private def problems: Seq[Node] = {
    val all = ofSettings ++ ofEvents
    if (all.isEmpty) Nil
    else
      section(
        "Problems",
        listing(Seq("Problem", "What is wrong", "What you can do"), all.distinct) { p =>
          Seq(
            code(p.code),
            Text(p.message),
            Remedy.ofProblem(p.code).fold(orDash(None))(sentence)
          )
        }
      )
  }

  private def ofSettings: Seq[Problem] = {
    val shown = showing
    val readable = ours.filterNot(_._2 == Shown.Hidden).toMap
    val problems = SettingProblems.of(readable, DecisionPoints.names) ++
      (if (tab.ui.sc.isDefined) Health.problems(Set.empty) else Nil)
    problems.map(p => p.copy(message = shown.message(p.message)))
  }

  private def ofEvents: Seq[Problem] =
    tab.record.policies.flatMap { p =>
      p.error.map(e =>
        Problem(Problem.PolicyTextInvalid, s"${p.policy}.${p.point}, revision ${p.revision}: $e")
      )
    } ++ tab.record.control.headOption.toSeq.flatMap { e =>
      e.problem.map(what => Problem(Problem.ControlUnreachable, s"${e.path}: $what"))
    }

  private def queries(request: Servlets.Request): Seq[Node] = {
    val all = tab.record.queries.filter(q => q.decisions + q.leftOut > 0 || q.closed.isDefined)
    val gone = tab.record.queriesLeftOut
    section(
      "Queries",
      (if (gone == 0) Nil
       else <p>{s"${count(gone, "older query").replace("querys", "queries")} made room."}</p>) ++
        (if (all.isEmpty) <p>No query has had a decision.</p>
         else
           new Table("queries", all, columns(request), true, tab.path(request) + "?", request)
             .nodes)
    )
  }

  private def columns(request: Servlets.Request): Seq[Column[KeptQuery]] = {
    def by[K: Ordering](key: KeptQuery => K) = Some(Ordering.by(key))
    def counted(name: String)(n: KeptQuery => Int) =
      Column[KeptQuery](name, by(n), q => Text(number(n(q).toLong)))
    Seq(
      Column("Query", by(_.id), q => link(request, q)),
      Column("Description", None, described),
      Column("Time", by(_.time), q => Text(UIUtils.formatDate(q.time))),
      Column("State", None, q => Text(QueryState.of(q))),
      counted("Decisions")(_.decisions),
      counted("Applied")(_.applied),
      counted("Adopted")(_.adopted),
      counted("Refused")(_.refused),
      counted("In shadow")(_.shadow),
      Column(
        "Arm",
        None,
        q => orDash(for (c <- q.closed; e <- c.experiment; arm <- c.arm) yield s"$e: $arm")
      )
    )
  }

  private def link(request: Servlets.Request, q: KeptQuery): Seq[Node] =
    <a href={tab.queryPath(request, q.id)}>{
      if (q.id == KeptQuery.NotRun) "not run" else q.id.toString
    }</a>

  private def described(q: KeptQuery): Seq[Node] =
    if (q.id == KeptQuery.NotRun) Text("planned for explain, an RDD or a cache")
    else tab.execution(q.id).map(_.description).fold(orDash(None))(words)
}

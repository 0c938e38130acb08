package org.apache.spark.sql.aqepilot.run

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.{AtomicBoolean, AtomicLong}

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.decision.DecisionPoints
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, Query, QueryFacts, Runs}
import org.apache.spark.sql.aqepilot.settings.{
  AqePilotConf,
  Arm,
  Experiment,
  ExperimentConf,
  Found,
  RunIdentity,
  Setting,
  StoppingRules
}
import org.apache.spark.sql.aqepilot.spark.{
  Application,
  BySettings,
  FailOpen,
  Recent,
  Record,
  Sessions
}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.log.{AqePilotExperiment, EventSchema}

/** One unit of an experiment, in this driver. */
final class Assigned(
    val experiment: Running,
    val unit: String,
    val arm: Arm,
    val run: RunIdentity
) {

  private val exposed = new AtomicBoolean
  private val besideNanos = new AtomicLong

  /** Whose policies are asked: the control's once a guard rail ended the arm here. */
  def inForce: Arm = experiment.inForce(arm)

  /** Until the arms' answers differ, the other arms' policies are asked, too. */
  def isExposed: Boolean = exposed.get

  /** From here on it would have gone otherwise under another arm. */
  def expose(executionId: Option[Long], detail: String): Unit =
    if (exposed.compareAndSet(false, true))
      experiment.tell(this, arm, "exposed", executionId, Some(detail))

  /** So long the other arms were asked. */
  def askedBeside(nanos: Long): Unit = besideNanos.addAndGet(nanos)

  /** In microseconds, since the last call. */
  private[run] def takeBeside(): Double = besideNanos.getAndSet(0) / 1e3

  def state: String =
    if (experiment.stopped(arm).isDefined) "stopped" else if (isExposed) "exposed" else "assigned"
}

/** An application's experiment.
  *
  * @param query
  *   the facts `query` of an execution
  * @param post
  *   puts an event into the log
  */
final class Running(
    val definition: Definition,
    query: Option[Long] => InternalRow,
    post: AqePilotExperiment => Unit
) {
  import Running._

  // None: it is not for this unit.
  private val units = Recent.map[String, Option[Assigned]](MaxUnits)
  private val executions = Recent.map[Long, Option[Assigned]](MaxUnits)
  private val ended = new ConcurrentHashMap[String, String]
  private val taken = new ConcurrentHashMap[String, Taken]

  def experiment: Experiment = definition.experiment.get

  /** Why an arm is not in force here any more. */
  def stopped(arm: Arm): Option[String] = Option(ended.get(arm.name))

  /** The arm whose policies are asked for the units of an arm. */
  def inForce(arm: Arm): Arm = if (stopped(arm).isEmpty) arm else experiment.control

  /** What a unit could run as under another arm. It must not depend on the arm that the unit has: which units are
    * exposed would depend on it, too, and only the control's would be once an arm is stopped.
    */
  def others(unit: Assigned): Seq[Arm] =
    experiment.arms.map(inForce).distinct.filter(_ != unit.inForce)

  /** Kept here, as the session may change its settings before the query's end is handled. */
  def keep(executionId: Long, assigned: Option[Assigned]): Unit =
    executions.putIfAbsent(executionId, assigned)

  /** What was kept of an execution. */
  def kept(executionId: Long): Option[Option[Assigned]] = Option(executions.get(executionId))

  /** The settings that a session leaves as they were submitted, or else runs outside. */
  private lazy val settings: Seq[String] =
    (AqePilotConf.Mode.key +: experiment.arms.flatMap(_.policies).distinct.flatMap { name =>
      (DecisionPoints.names ++ AqePilotConf.policyParts)
        .map(part => s"${AqePilotConf.PolicyPrefix}$name.$part")
    })

  /** Whether a session has the arms' policies as they were submitted. */
  def hasSubmitted(
      setting: String => Option[String],
      submitted: String => Option[String]
  ): Boolean =
    definition.experiment.isEmpty || settings.forall(key => setting(key) == submitted(key))

  /** The unit that a session and query belong to; none where that is not known. */
  def unitOf(
      run: RunIdentity,
      session: => Option[String],
      query: => Option[String]
  ): Option[String] =
    if (definition.experiment.isEmpty) None
    else
      experiment.unitKind match {
        case Experiment.QueryRun => query.map(q => s"${run.job.value}|${run.run.value}|$q")
        case Experiment.Session  => session
        case _                   => Some(s"${run.job.value}|${run.run.value}")
      }

  /** The arm of a unit, drawn at the first call; none for one that is outside the experiment. */
  def assigned(unit: String, run: RunIdentity, executionId: Option[Long]): Option[Assigned] = {
    val known = units.get(unit)
    if (known != null) known
    else
      units.synchronized {
        val known = units.get(unit)
        if (known != null) known
        else {
          val made =
            if (definition.isRunning(System.currentTimeMillis()) && isMeant(executionId))
              Some(new Assigned(this, unit, experiment.armOf(unit), run))
            else None
          units.put(unit, made)
          made.foreach(unit => tell(unit, unit.arm, "assigned", None, None))
          made
        }
      }
  }

  /** The same of one that was looked up before. */
  def known(unit: String): Option[Assigned] = Option(units.get(unit)).flatten

  private def isMeant(executionId: Option[Long]) = definition.when.forall { when =>
    val facts = new GenericInternalRow(Array[Any](query(executionId)))
    when.eval(facts) match {
      case Right(value)  => value == true
      case Left(failure) =>
        FailOpen.warnOnce(
          s"${ExperimentConf.When.key}: ${failure.message} The unit is left out of the experiment."
        )
        false
    }
  }

  /** A query of a unit has ended.
    *
    * What happens before a unit is exposed happens under each of its arms, and must end all of them or none: its failures
    * are no arm's, and the time for which its arms were asked counts for all.
    */
  def closed(unit: Assigned, hasFailed: Boolean, wallMillis: Long, askedMicros: Double): Unit = {
    val asked = (askedMicros + unit.takeBeside()) / 1e3
    val (arms, failed) =
      if (unit.isExposed) (Seq(unit.arm), if (hasFailed) 1 else 0) else (experiment.arms, 0)
    arms.filter(arm => arm != experiment.control && stopped(arm).isEmpty).foreach { arm =>
      val sum = taken.merge(
        arm.name,
        Taken(failed, wallMillis, asked),
        (a, b) =>
          Taken(a.failed + b.failed, a.wallMillis + b.wallMillis, a.askedMillis + b.askedMillis)
      )
      breached(sum).foreach { why =>
        if (ended.putIfAbsent(arm.name, why) == null) {
          tell(unit, arm, "stopped", None, Some(why))
          FailOpen.warnOnce(
            s"EXPERIMENT_STOPPED: arm ${arm.name} of experiment ${experiment.name} is not in force in this " +
              s"application any more, which goes on as ${experiment.control.name}: $why"
          )
        }
      }
    }
  }

  private def breached(sum: Taken): Option[String] = {
    val guards = definition.guardrails
    val share = 100 * sum.askedMillis / math.max(1.0, sum.wallMillis.toDouble)
    guards.failedQueries.filter(sum.failed >= _).map { n =>
      s"${sum.failed} failed queries (${StoppingRules.FailedQueries}:$n)"
    }.orElse(guards.driverPercent.filter(share > _ && sum.wallMillis >= LeastMillis).map { most =>
      f"asking took $share%.1f %% of the time of queries (${StoppingRules.DriverTime}:$most%.1f)"
    })
  }

  private[run] def tell(
      assigned: Assigned,
      arm: Arm,
      what: String,
      executionId: Option[Long],
      detail: Option[String]
  ): Unit = FailOpen("experiment", ()) {
    post(
      AqePilotExperiment(
        EventSchema.Version,
        System.currentTimeMillis(),
        experiment.name,
        experiment.unitKind,
        assigned.unit,
        arm.name,
        experiment.arms.map(a => s"${a.name}:${a.weight / 100.0}").mkString(","),
        definition.metric,
        what,
        detail,
        executionId,
        assigned.run.job.value,
        assigned.run.run.value,
        assigned.run.attempt.map { case Found(n, _) => n }
      )
    )
  }
}

private[aqepilot] object Running {
  val MaxUnits = 10000
  val LeastMillis = 60000L

  final case class Taken(failed: Int, wallMillis: Long, askedMillis: Double)
}

/** Which arm of the submitted experiment a session or query has. */
object Experiments {

  def of(sc: SparkContext): Option[Running] = known.of(sc)

  private val known = new Application.Value[Option[Running]](sc =>
    Definition.read(sc.conf.getOption, Runs.limit(sc)).map(
      new Running(
        _,
        id => CommonFacts.query.row(Query.of(sc, SQLConf.get, id)),
        Record.of(sc).experiment(_)
      )
    )
  )

  /** When the application starts: the run gets its arm, so that one without an outcome is seen. */
  def begin(sc: SparkContext): Unit = of(sc).foreach { running =>
    val run = Runs.of(new SQLConf, sc)
    if (running.definition.experiment.exists(_.unitKind == Experiment.JobRun))
      running.unitOf(run, None, None).flatMap(running.assigned(_, run, None)).foreach { unit =>
        FailOpen.info(
          s"experiment ${running.experiment.name}: ${unit.unit} has arm ${unit.arm.name}"
        )
      }
  }

  /** @param assigned
    *   none for control, where the experiment does not run or is not for it
    * @param arm
    *   whose policies are asked
    */
  final case class Place(running: Running, assigned: Option[Assigned], arm: Arm)

  /** Where this thread's query belongs; none where no experiment is submitted, no arms can be read, or the session
    * brings its own list of policies. A session that brings its own texts of the arms' policies has those, as control.
    */
  def place(conf: SQLConf): Option[Place] = for {
    sc <- SparkContext.getActive
    running <- of(sc)
    control <- running.definition.control
    session = sessions.of(sc).of(conf)(read(running, sc, _))
    if session.hasSubmittedList || keptOutside(running, sc)
  } yield {
    val executionId = QueryFacts.executionId(sc)
    val run = Runs.of(conf, sc, executionId)
    val unit = Some(run).filter(_ => session.isInside).flatMap(
      running.unitOf(
        _,
        Sessions.active.map(Owners.of(_, executionId)),
        QueryFacts.fingerprint(executionId)
      )
    )
    val assigned = unit.flatMap(running.assigned(_, run, executionId))
    if (unit.isDefined || !session.isInside) executionId.foreach(running.keep(_, assigned))
    Place(running, assigned, assigned.fold(control)(_.inForce))
  }

  private def keptOutside(running: Running, sc: SparkContext): Boolean = {
    QueryFacts.executionId(sc).foreach(running.keep(_, None))
    false
  }

  /** The same of a query that has ended: what was looked up while it ran, as far as it was planned then. */
  def ended(
      sc: SparkContext,
      conf: SQLConf,
      executionId: Long,
      session: => Option[String],
      query: => Option[String]
  ): Option[Assigned] = of(sc).flatMap { running =>
    running.kept(executionId).getOrElse {
      val settings = sessions.of(sc).of(conf)(read(running, sc, _))
      Some(Runs.of(conf, sc, Some(executionId))).filter(_ => settings.isInside)
        .flatMap(running.unitOf(_, session, query)).flatMap(running.known)
    }
  }

  /** What a session's settings say. */
  final private case class OfSession(
      hasSubmittedList: Boolean,
      hasSubmittedPolicies: Boolean
  ) {
    def isInside: Boolean = hasSubmittedList && hasSubmittedPolicies
  }

  private val sessions = new Application.Value(_ => new BySettings[OfSession])

  private def read(running: Running, sc: SparkContext, conf: SQLConf) = OfSession(
    conf.getConfString(AqePilotConf.Policies.key, "") ==
      Setting.submitted(AqePilotConf.Policies.key).getOrElse(""),
    running.hasSubmitted(
      key => Option(conf.getConfString(key, null)),
      Setting.submitted
    )
  )
}

package org.apache.spark.sql.aqepilot.experiment

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot._
import org.apache.spark.sql.aqepilot.facts.QueryFacts
import org.apache.spark.sql.aqepilot.log.{DecisionLog, Owners}
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.decision.{Arm, DecisionPoint, Experiment, Found, RunIdentity}
import io.aqepilot.log.{AqePilotExperiment, EventSchema}

/** One unit of an experiment, in this driver. */
final class Assigned(val of: Running, val unit: String, val arm: Arm, val run: RunIdentity) {

  private val isExposed = new AtomicBoolean

  /** Whose policies are asked: the control's once a guard rail ended the arm here. */
  def inForce: Arm = if (of.stopped(arm).isEmpty) arm else of.experiment.control

  /** Until the arms' answers differ, the other arms' policies are asked, too. */
  def isOpen: Boolean = !isExposed.get && of.stopped(arm).isEmpty

  /** From here on it would have gone otherwise under another arm. */
  def expose(executionId: Option[Long], detail: String): Unit =
    if (isExposed.compareAndSet(false, true)) of.tell(this, "exposed", executionId, Some(detail))

  def state: String =
    if (of.stopped(arm).isDefined) "stopped" else if (isExposed.get) "exposed" else "assigned"
}

/** An application's experiment. */
final class Running(sc: SparkContext, val definition: Definition) {
  import Running._

  // None: it is not for this unit.
  private val units = Recent.map[String, Option[Assigned]](MaxUnits)
  private val ended = new ConcurrentHashMap[String, String]
  private val taken = new ConcurrentHashMap[String, Taken]

  def experiment: Experiment = definition.experiment.get

  /** Why an arm is not in force here any more. */
  def stopped(arm: Arm): Option[String] = Option(ended.get(arm.name))

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
    val found = units.get(unit)
    if (found != null) found
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
          made.foreach(tell(_, "assigned", None, None))
          made
        }
      }
  }

  /** The same of one that was looked up before. */
  def known(unit: String): Option[Assigned] = Option(units.get(unit)).flatten

  private def isMeant(executionId: Option[Long]) = definition.when.forall { when =>
    val facts = new GenericInternalRow(Array[Any](QueryFacts.query(sc, executionId)))
    when.eval(facts) match {
      case Right(value)  => value == true
      case Left(failure) =>
        FailOpen.warnOnce(
          s"${Definition.When.key}: ${failure.message} The unit is left out of the experiment."
        )
        false
    }
  }

  /** A query of a unit has ended. */
  def closed(unit: Assigned, hasFailed: Boolean, wallMillis: Long, askedMicros: Double): Unit = {
    val arm = unit.arm
    if (arm != experiment.control && stopped(arm).isEmpty) {
      val sum = taken.merge(
        arm.name,
        Taken(if (hasFailed) 1 else 0, wallMillis, askedMicros / 1e3),
        (a, b) =>
          Taken(a.failed + b.failed, a.wallMillis + b.wallMillis, a.askedMillis + b.askedMillis)
      )
      val guards = definition.guardrails
      val failures = guards.failedQueries.filter(sum.failed >= _).map { n =>
        s"${sum.failed} failed queries (${StoppingRules.FailedQueries}:$n)"
      }
      val share = 100 * sum.askedMillis / math.max(1.0, sum.wallMillis.toDouble)
      val time =
        guards.driverPercent.filter(share > _ && sum.wallMillis >= LeastMillis).map { most =>
          f"asking took $share%.1f %% of the time of queries (${StoppingRules.DriverTime}:$most%.1f)"
        }
      failures.orElse(time).foreach { why =>
        if (ended.putIfAbsent(arm.name, why) == null) {
          tell(unit, "stopped", None, Some(why))
          FailOpen.warnOnce(
            s"EXPERIMENT_STOPPED: arm ${arm.name} of experiment ${experiment.name} is not in force in this " +
              s"application any more, which goes on as ${experiment.control.name}: $why"
          )
        }
      }
    }
  }

  private[experiment] def tell(
      of: Assigned,
      what: String,
      executionId: Option[Long],
      detail: Option[String]
  ): Unit = FailOpen("experiment", ()) {
    DecisionLog.get(sc).experiment(
      AqePilotExperiment(
        EventSchema.Version,
        System.currentTimeMillis(),
        experiment.name,
        experiment.unitKind,
        of.unit,
        of.arm.name,
        experiment.arms.map(a => s"${a.name}:${a.weight / 100.0}").mkString(","),
        definition.metric,
        what,
        detail,
        executionId,
        of.run.job.value,
        of.run.run.value,
        of.run.attempt.map { case Found(n, _) => n }
      )
    )
  }
}

private object Running {
  val MaxUnits = 10000
  val LeastMillis = 60000L

  final case class Taken(failed: Int, wallMillis: Long, askedMillis: Double)
}

/** Which arm of the submitted experiment a session or query has. */
object Experiments {

  def of(sc: SparkContext): Option[Running] = known.of(sc)

  private val known = new PerApplication[Option[Running]](sc =>
    Definition.read(sc.conf.getOption, Runs.limit(sc)).map(new Running(sc, _))
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
    * brings its own list of policies.
    */
  def place(conf: SQLConf): Option[Place] = for {
    sc <- SparkContext.getActive
    running <- of(sc)
    control <- running.definition.control
    if isSubmittedList(conf)
  } yield {
    val run = Runs.of(conf, sc)
    lazy val executionId = QueryFacts.executionId(sc)
    val unit = running.unitOf(
      run,
      Sessions.active.map(Owners.of(_, executionId)),
      QueryFacts.fingerprint(executionId)
    )
    val assigned = unit.flatMap(running.assigned(_, run, executionId))
    Place(running, assigned, assigned.fold(control)(_.inForce))
  }

  /** The same of a query that has ended: only what was looked up while it ran. */
  def ended(
      sc: SparkContext,
      conf: SQLConf,
      session: => Option[String],
      query: => Option[String]
  ): Option[Assigned] = of(sc).filter(_ => isSubmittedList(conf)).flatMap { running =>
    running.unitOf(Runs.of(conf, sc), session, query).flatMap(running.known)
  }

  private def isSubmittedList(conf: SQLConf) =
    conf.getConfString(AqePilotConf.Policies.key, "") ==
      AqePilotConf.submitted(AqePilotConf.Policies.key).getOrElse("")
}

/** The other arms of a unit, asked beside its own until an answer differs.
  *
  * @param others
  *   each with its policies, as far as they may go
  */
final class OtherArms(val assigned: Assigned, others: Seq[(Arm, PolicySet)]) {

  def isAsked(point: DecisionPoint): Boolean =
    assigned.isOpen && others.exists(_._2.at(point).exists(_.mode == Mode.Enforce))

  /** @param own
    *   what the own arm does here; none is Spark's own
    * @param of
    *   what another's policies would do
    */
  def compare(point: DecisionPoint, executionId: Option[Long], own: Option[Any])(
      of: PolicySet => Option[Any]
  ): Unit = if (isAsked(point) || (assigned.isOpen && own.isDefined)) {
    def said(decision: Option[Any]) = decision.fold("Spark's own")(point.show(_).take(MaxChars))
    others.iterator
      .map { case (arm, set) => arm -> of(set) }
      .find { case (_, theirs) => said(theirs) != said(own) }
      .foreach { case (arm, theirs) =>
        assigned.expose(
          executionId,
          s"${point.name}: ${said(own)}, with arm ${arm.name}: ${said(theirs)}"
        )
      }
  }

  private val MaxChars = 200
}

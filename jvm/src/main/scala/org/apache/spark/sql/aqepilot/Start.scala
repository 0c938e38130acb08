package org.apache.spark.sql.aqepilot

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.sql.aqepilot.control.Control
import org.apache.spark.sql.aqepilot.decision.{ConfiguredPolicies, Health, PolicySet, Runs}
import org.apache.spark.sql.aqepilot.doors.FailOpen
import org.apache.spark.sql.aqepilot.experiment.Experiments
import org.apache.spark.sql.aqepilot.log.{DecisionLog, PolicyNews}
import org.apache.spark.sql.aqepilot.points.cost_evaluation.CostEvaluatorInstall
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, ExperimentConf}

import io.aqepilot.points.cost_evaluation.CostEvaluationPoint
import io.aqepilot.terms.Problem

/** What happens once, when the extension is applied to a new session. */
object Start {

  /** Registers, and looks at what was submitted.
    *
    * A fault leaves Spark as it is, but for a submitted policy that is wrong where
    * `spark.aqepilot.strict=true` asks for it to fail the application.
    */
  def apply(registrations: => Unit): Unit = {
    // Each by itself: what a vendor's Spark lacks for one may be there for the others.
    FailOpen("faults", ())(DecisionLog.begin())
    val settings = AqePilotConf.settings
    FailOpen("settings", ())(AqePilotConf.register(settings))
    FailOpen("start", ())(registrations)
    FailOpen("fates", ())(if (Health.isRightJar) DecisionLog.readFatesWith(Fates))
    FailOpen.recover(CostEvaluationPoint.name)(Health.after(_, CostEvaluationPoint)) {
      if (Health.isRightJar) SparkContext.getActive.foreach(sc => CostEvaluatorInstall(sc.conf))
    }
    FailOpen("control", ())(if (Health.isRightJar) SparkContext.getActive.foreach(Control.begin))
    val problems = FailOpen("submitted", Seq.empty[String]) {
      SparkContext.getActive.toSeq.flatMap(submittedProblems)
    }
    if (
      problems.nonEmpty &&
      AqePilotConf.isTrue(AqePilotConf.getSubmitted(AqePilotConf.Strict))
    ) {
      throw new SparkException(
        problems.mkString(
          "aqepilot: the submitted configuration is wrong, and spark.aqepilot.strict=true:\n  ",
          "\n  ",
          "\n"
        )
      )
    }
  }

  private def submittedProblems(sc: SparkContext): Seq[String] = {
    val submitted = sc.getConf.getAll.toMap
    val names = submitted.get(AqePilotConf.Policies.key).toSeq.flatMap(AqePilotConf.splitNames) ++
      ExperimentConf.policiesOf(submitted.get(ExperimentConf.Arms.key))
    val set =
      if (names.isEmpty) PolicySet.empty
      else ConfiguredPolicies.submitted(names, submitted.get, Runs.limit(sc))
    val experiment = Experiments.of(sc).toSeq.flatMap(_.definition.problems)
    val problems =
      Health.problems(set) ++ AqePilotConf.problems(submitted) ++ set.problems ++ experiment
    problems.foreach(FailOpen.problem)
    PolicyNews.warn(set)
    if (set.policies.nonEmpty)
      Runs.limit(sc).foreach { case (_, why) => FailOpen.problem(Problem("RETRIED_RUN", why)) }
    DecisionLog.get(sc)
    FailOpen("experiment", ())(if (Health.isRightJar) Experiments.begin(sc))
    if (set.policies.exists(_.isLive)) {
      FailOpen.info(
        set.policies
          .filter(_.isLive)
          .map(p => s"${p.name}.${p.point.name} (${p.mode.name}, revision ${p.revision})")
          .mkString("policies ", ", ", "")
      )
    }
    problems.map(p => s"${p.code}: ${p.message}")
  }
}

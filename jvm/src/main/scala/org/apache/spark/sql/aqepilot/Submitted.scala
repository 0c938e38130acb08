package org.apache.spark.sql.aqepilot

import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.facts.Runs
import org.apache.spark.sql.aqepilot.policy.python.PythonText
import org.apache.spark.sql.aqepilot.policy.{ConfiguredPolicies, PolicySet}
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.record.{DecisionLog, PolicyNews}
import org.apache.spark.sql.aqepilot.run.Experiments
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, ExperimentConf, SettingProblems}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, Sessions, WithoutSession}
import org.apache.spark.{SparkContext, SparkException}

/** The policies that an application was submitted with, made ready before its first query asks them.
  *
  * That is done beside the application, which goes on. A query that comes before waits for what is being compiled, as
  * it would if it compiled that itself. What may fail the start, draws an arm or starts processes is not left to another
  * thread: that might outlive the application.
  */
final private class Submitted(sc: SparkContext) {

  private val settings = sc.getConf.getAll.toMap

  private val arms = ExperimentConf.policiesOf(settings.get(ExperimentConf.Arms.key))

  private val names =
    settings.get(AqePilotConf.Policies.key).toSeq.flatMap(AqePilotConf.splitNames) ++ arms

  private def isStrict = AqePilotConf.Strict.inForce

  private def hasPython = settings.exists { case (key, text) =>
    key.startsWith(AqePilotConf.PolicyPrefix) && PythonText.is(text)
  }

  /** @throws org.apache.spark.SparkException
    *   something is wrong, and `spark.aqepilot.strict=true`
    */
  def begin(): Unit = {
    FailOpen("record", ())(DecisionLog.of(sc))
    if (names.isEmpty || isStrict || arms.nonEmpty || hasPython || !Health.isRightJar) {
      val set = FailOpen("submitted", PolicySet.empty)(compiled)
      val problems = FailOpen("submitted", Seq.empty[Problem])(tell(set))
      if (problems.nonEmpty && isStrict) throw wrong(problems)
      if (set.policies.exists(_.isLive)) beside(rehearse(set))
    } else
      beside {
        val set = compiled
        tell(set)
        rehearse(set)
      }
  }

  private def compiled: PolicySet =
    if (names.isEmpty) PolicySet.empty
    else ConfiguredPolicies.submitted(names, settings.get, Runs.limit(sc))

  private def tell(set: PolicySet): Seq[Problem] = {
    val experiment = Experiments.of(sc).toSeq.flatMap(_.definition.problems)
    val problems =
      Health.problems(set.points) ++ SettingProblems.of(
        settings,
        DecisionPoints.names
      ) ++ set.problems ++ experiment
    problems.foreach(FailOpen.problem)
    PolicyNews.warn(set)
    if (set.policies.nonEmpty)
      Runs.limit(sc).foreach { case (_, why) => FailOpen.problem(Problem("RETRIED_RUN", why)) }
    FailOpen("experiment", ())(if (Health.isRightJar) Experiments.begin(sc))
    val live = set.policies.filter(_.isLive)
    if (live.nonEmpty)
      FailOpen.info(
        live
          .map(p => s"${p.name}.${p.point.name} (${p.mode.name}, revision ${p.revision})")
          .mkString("policies ", ", ", "")
      )
    problems
  }

  private def wrong(problems: Seq[Problem]) = new SparkException(
    problems.map(p => s"${p.code}: ${p.message}").mkString(
      "aqepilot: the submitted configuration is wrong, and spark.aqepilot.strict=true:\n  ",
      "\n  ",
      "\n"
    )
  )

  private def rehearse(set: PolicySet): Unit =
    if (Health.isRightJar) {
      new FirstAsk(sc, set).rehearse()
      ()
    }

  /** Nobody waits for the thread, which does not keep the driver from its end. */
  private def beside(body: => Unit): Unit = {
    val thread = new Thread("aqepilot-start") {
      override def run(): Unit = {
        Sessions.forget()
        FailOpen("submitted", ())(if (!sc.isStopped) body)
      }
    }
    thread.setDaemon(true)
    FailOpen("submitted", ())(WithoutSession(thread.start()))
  }
}

private object Submitted {

  /** @throws org.apache.spark.SparkException
    *   something is wrong, and `spark.aqepilot.strict=true`
    */
  def begin(sc: SparkContext): Unit =
    FailOpen("submitted", Option.empty[Submitted])(Some(new Submitted(sc))).foreach(_.begin())
}

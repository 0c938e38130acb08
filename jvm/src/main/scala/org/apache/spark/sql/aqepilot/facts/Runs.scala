package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Mode, RunIdentity}
import org.apache.spark.sql.aqepilot.spark.{Application, BySettings}
import org.apache.spark.sql.internal.SQLConf

/** Which run of which job this is, and what policies may do when its scheduler tries it again. */
object Runs {

  /** The session's, whose own job and run count where its policies do; who may not bring a policy shall not switch
    * one on that was submitted for another job.
    */
  def of(conf: SQLConf, sc: SparkContext): RunIdentity =
    if (doSessionsCount.of(sc)) known.of(sc).of(conf)(read(_, sc)) else submitted(sc)

  /** A query's: where sessions' own jobs count, dbt names one in a comment. */
  def of(conf: SQLConf, sc: SparkContext, executionId: Option[Long]): RunIdentity = {
    val session = of(conf, sc)
    if (doSessionsCount.of(sc)) session.ofModel(DbtModels.of(sc, executionId)) else session
  }

  /** As the application was submitted. */
  def submitted(sc: SparkContext): RunIdentity = ofApplications.of(sc)

  /** All names of the job of this thread's query: one that a session or query names is still of the job that was
    * submitted.
    */
  def jobs(conf: SQLConf, sc: SparkContext): Set[String] =
    Set(submitted(sc), of(conf, sc), of(conf, sc, QueryFacts.executionId(sc))).map(_.job.value)

  private val doSessionsCount = new Application.Value(_ => AqePilotConf.sessionPolicies == "allow")
  private val known = new Application.Value(_ => new BySettings[RunIdentity])
  private val ofApplications = new Application.Value(sc => identity(sc, sc.conf.getOption))

  private def read(conf: SQLConf, sc: SparkContext) =
    identity(sc, key => Option(conf.getConfString(key, null)).orElse(sc.conf.getOption(key)))
      .copy(attempt = submitted(sc).attempt)

  private def identity(sc: SparkContext, setting: String => Option[String]) =
    RunIdentity.of(setting, environment, sc.appName, sc.applicationId)

  private def environment(name: String): Option[String] = Option(System.getenv(name))

  /** The most that policies may do in this run, and why, if that is less than they are meant to: what a policy may
    * have caused must not fail a job twice.
    */
  def limit(sc: SparkContext): Option[(Mode, String)] = limits.of(sc)

  private val limits = new Application.Value[Option[(Mode, String)]](sc => {
    val mode = AqePilotConf.OnRetry.inForce
    submitted(sc).attempt
      .filter(attempt => RunIdentity.isRetry(attempt) && mode != Mode.Enforce)
      .map { attempt =>
        val why =
          s"attempt ${attempt.value} (${attempt.source}): ${AqePilotConf.OnRetry.key}=${mode.name}"
        (mode, why)
      }
  })
}

package org.apache.spark.sql.aqepilot

import org.apache.spark.SparkContext
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.decision.RunIdentity

/** Which run of which job this is, and what policies may do when its scheduler tries it again. */
object Runs {

  def of(conf: SQLConf, sc: SparkContext): RunIdentity =
    known.of(sc).of(conf)(read(_, sc))

  private val known = new PerApplication(_ => new BySettings[RunIdentity])

  private def read(conf: SQLConf, sc: SparkContext) = RunIdentity.of(
    key => Option(conf.getConfString(key, null)).orElse(sc.conf.getOption(key)),
    environment,
    sc.appName,
    sc.applicationId
  )

  private def environment(name: String): Option[String] = Option(System.getenv(name))

  /** The most that policies may do in this run, and why, if that is less than they are meant to: what a policy may
    * have caused must not fail a job twice.
    */
  def limit(sc: SparkContext): Option[(Mode, String)] = limits.of(sc)

  private val limits = new PerApplication[Option[(Mode, String)]](sc => {
    val mode = Mode.of(AqePilotConf.inForce(AqePilotConf.OnRetry))
    RunIdentity
      .attempt(sc.conf.getOption, environment)
      .filter(found => RunIdentity.isRetry(found) && mode != Mode.Enforce)
      .map { found =>
        val why =
          s"attempt ${found.value} (${found.source}): ${AqePilotConf.OnRetry.key}=${mode.name}"
        (mode, why)
      }
  })
}

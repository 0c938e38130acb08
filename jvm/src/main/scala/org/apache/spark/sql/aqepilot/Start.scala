package org.apache.spark.sql.aqepilot

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.internal.Logging
import org.apache.spark.sql.aqepilot.log.{DecisionLog, PolicyNews}
import org.apache.spark.sql.aqepilot.rewrite.{CostEvaluatorInstall, Fates}

/** What happens once, when the extension is applied to a new session. */
object Start extends Logging {

  /** Registers, and looks at what was submitted.
    *
    * A fault leaves Spark as it is, but for a submitted policy that is wrong where
    * `spark.aqepilot.strict=true` asks for it to fail the application.
    */
  def apply(registrations: => Unit): Unit = {
    val problems = FailOpen("start", Seq.empty[String]) {
      AqePilotConf.register()
      registrations
      if (Health.isRightJar) {
        DecisionLog.readFatesWith(Fates)
        SparkContext.getActive.foreach(sc => CostEvaluatorInstall(sc.conf))
      }
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
    val set = submitted
      .get(AqePilotConf.Policies.key)
      .fold(PolicySet.empty)(p => PolicySet.submitted(AqePilotConf.splitNames(p), submitted.get))
    val problems = Health.problems(set) ++ AqePilotConf.problems(submitted) ++ set.problems
    problems.foreach(p => FailOpen.warnOnce(s"${p.code}: ${p.message}"))
    PolicyNews.warn(set)
    DecisionLog.get(sc)
    if (set.policies.exists(_.isLive)) {
      logInfo(
        set.policies
          .filter(_.isLive)
          .map(p => s"${p.name}.${p.point.name} (${p.mode.name}, revision ${p.revision})")
          .mkString("aqepilot: policies ", ", ", "")
      )
    }
    problems.map(p => s"${p.code}: ${p.message}")
  }
}

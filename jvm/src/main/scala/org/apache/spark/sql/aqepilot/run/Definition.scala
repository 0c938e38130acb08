package org.apache.spark.sql.aqepilot.run

import org.apache.spark.sql.aqepilot.policy.{CompiledPolicy, ConfiguredPolicies, PolicyTexts}
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.settings.ExperimentConf._
import org.apache.spark.sql.aqepilot.settings.{
  AqePilotConf,
  Arm,
  Experiment,
  Mode,
  Setting,
  StoppingRules
}

/** What is submitted of an experiment.
  *
  * @param experiment
  *   none where something is wrong with it
  * @param control
  *   what runs where the experiment does not: the first arm, or none where no arms can be read
  * @param when
  *   for which units it is; none is for all
  * @param start
  *   in milliseconds since 1970: units that begin before run as control; none is no such limit
  * @param end
  *   the same of units that begin then or later
  */
final case class Definition(
    experiment: Option[Experiment],
    control: Option[Arm],
    metric: String,
    guardrails: StoppingRules,
    when: Option[CompiledPolicy],
    start: Option[Long],
    end: Option[Long],
    problems: Seq[Problem]
) {
  def isRunning(now: Long): Boolean =
    experiment.isDefined && start.forall(now >= _) && end.forall(now < _)
}

object Definition {

  /** Reads what is submitted. Waits for Python functions to be loaded.
    *
    * @return
    *   none where there is no experiment
    */
  def read(get: String => Option[String], limit: Option[(Mode, String)]): Option[Definition] = {
    val submitted = settings.filter(s => get(s.key).isDefined)
    if (submitted.isEmpty) None
    else {
      def good(setting: Setting[_]) =
        get(setting.key).filter(setting.problem(_).isEmpty).orElse(setting.default)
      val arms = good(Arms).flatMap(Experiment.parseArms(_).toOption)
      val names = arms.toSeq.flatten.flatMap(_.policies).distinct
      val start = good(StartAt).flatMap(time)
      val end = good(EndAt).flatMap(time)
      val when = good(When).map(PolicyTexts.compileWhen)
      val missing = Seq(Name, Arms).filter(s => get(s.key).isEmpty).map(s => s"${s.key} is not set")
      val order =
        if (start.exists(s => end.exists(_ <= s))) Seq(s"${EndAt.key} is not after ${StartAt.key}")
        else Nil
      val unbound = when.flatMap(_.left.toOption).toSeq.map { e =>
        val place = (e.line.map(l => s" line $l") ++ e.column.map(c => s" column $c")).mkString(",")
        s"${When.key}:$place ${e.message}"
      }
      val set = ConfiguredPolicies.submitted(names, get, limit)
      val faulty = set.policies.filter(_.error.exists(!_.isPassing)).map(_.name)
      val undefined = names.filterNot(name => set.policies.exists(_.name == name))
      val policies = (undefined.map(n =>
        s"${Arms.key} names '$n', but ${AqePilotConf.PolicyPrefix}$n has no text at any decision point"
      ) ++ faulty.distinct.map(n => s"${Arms.key} names '$n', whose text is wrong"))
      val crossed = missing ++ order ++ unbound ++ policies
      val isWrong = crossed.nonEmpty || submitted.exists(s => s.problem(get(s.key).get).nonEmpty)
      val experiment = for {
        name <- good(Name)
        both <- arms if !isWrong
        unit <- good(Unit)
      } yield Experiment(name, both, unit, good(Salt).getOrElse(""))
      Some(
        Definition(
          experiment,
          arms.map(_.head),
          good(Metric).get,
          StoppingRules.parse(good(Guardrails).get).toOption.get,
          when.flatMap(_.toOption),
          start,
          end,
          crossed.map(what => Problem(Problem.ExperimentInvalid, s"$what; $Instead"))
        )
      )
    }
  }
}

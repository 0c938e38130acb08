package org.apache.spark.sql.aqepilot.settings

import org.apache.spark.sql.aqepilot.reasons.{NearestNames, Problem}
import org.apache.spark.sql.aqepilot.settings.AqePilotConf._

/** What is wrong with settings. */
object SettingProblems {

  /** What is wrong with the `spark.aqepilot.*` settings among `all`, policies' texts aside.
    *
    * @param points
    *   names of the decision points
    */
  def of(all: Map[String, String], points: Seq[String]): Seq[Problem] = {
    val ours = all.filter(_._1.startsWith(Prefix))
    val listed =
      ((ours.get(Policies.key) ++ Setting.submitted(Policies.key)).flatMap(splitNames).toSeq ++
        ExperimentConf.policiesOf(ours.get(ExperimentConf.Arms.key))).distinct
    val invalid = settings.flatMap { s =>
      ours.get(s.key).flatMap(s.problem(_)).map { what =>
        val code = if (s == AqePilotConf.Mode) Problem.ModeInvalid else Problem.SettingInvalid
        val instead =
          if (s == AqePilotConf.Mode) "it counts as off"
          else if (s == SessionPolicies) "it counts as deny"
          else if (ExperimentConf.settings.contains(s)) ExperimentConf.Instead
          else s.default.fold("it counts as not set")(d => s"$d holds")
        Problem(code, s"${s.key}: $what; $instead")
      }
    }
    val unknown = ours.keys.toSeq.sorted.filterNot(k => settings.exists(_.key == k)).flatMap {
      case key if key.startsWith(PolicyPrefix) =>
        key.stripPrefix(PolicyPrefix).split("\\.", 2) match {
          case Array(name, part) if isPolicyName(name) =>
            val known = points ++ policyParts
            if (!known.contains(part)) {
              Some(
                Problem(
                  Problem.PolicyPointUnknown,
                  s"$key: no decision point is named '$part'${NearestNames.instead(part, known)}"
                )
              )
            } else if (!listed.contains(name)) {
              Some(
                Problem(
                  Problem.PolicyNotListed,
                  s"$key is set, but ${Policies.key} does not name '$name': it is never asked. Add " +
                    s"--conf ${Policies.key}=${(listed :+ name).mkString(",")}"
                )
              )
            } else None
          case _ =>
            Some(
              Problem(
                Problem.PolicyNameInvalid,
                s"$key: expected ${PolicyPrefix}<name>.<point>, the name a lower-case letter followed " +
                  "by a-z, 0-9 or _"
              )
            )
        }
      case key =>
        val instead = NearestNames.instead(key, settings.map(_.key))
        Some(Problem(Problem.SettingUnknown, s"$key is not a setting$instead"))
    }
    val ignored =
      if (sessionPolicies == "allow") Nil
      else
        Seq(Job.key, Run.key).filter(key =>
          ours.get(key).exists(!Setting.submitted(key).contains(_))
        ).map {
          key =>
            Problem(
              Problem.RunIgnored,
              s"$key is the session's own, and ${SessionPolicies.key}=$sessionPolicies: what was submitted holds"
            )
        }
    invalid ++ unknown.distinct ++ ignored
  }
}

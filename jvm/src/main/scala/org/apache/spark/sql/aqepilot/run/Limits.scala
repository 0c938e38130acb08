package org.apache.spark.sql.aqepilot.run

import org.apache.spark.sql.aqepilot.policy.{NamedPolicy, PolicySet}
import org.apache.spark.sql.aqepilot.settings.Mode
import org.apache.spark.sql.aqepilot.spark.Recent

/** What the rules that hold make of policies. */
final class Limits(val rules: Seq[ControlRule], spark: String) {

  private val (ofQueries, ofAll) = rules.partition(_.isForQuery)
  private val known = Recent.map[(PolicySet, Set[String]), PolicySet](Limits.MaxSets)

  /** The same policies with what rules leave of their modes, but for rules on single queries.
    *
    * @param jobs
    *   all names that the job has
    */
  def of(set: PolicySet, jobs: => Set[String]): PolicySet =
    if (rules.isEmpty || set.policies.isEmpty) set
    else {
      val names = jobs
      known.computeIfAbsent(
        (set, names),
        _ => {
          val lowered = set.policies.map(lower(_, names, None, ofAll))
          new PolicySet(
            lowered,
            set.problems,
            if (ofQueries.isEmpty) None else Some(ofQuery(names, _, _))
          )
        }
      )
    }

  private def ofQuery(jobs: Set[String], policy: NamedPolicy, fingerprint: Option[String]) =
    lower(policy, jobs, fingerprint, ofQueries)

  private def lower(
      policy: NamedPolicy,
      jobs: Set[String],
      fingerprint: Option[String],
      rules: Seq[ControlRule]
  ): NamedPolicy = {
    val own = rules.filter(_.isFor(policy, jobs, spark, fingerprint))
    if (own.isEmpty) policy
    else {
      val least = own.minBy(_.mode.rank)
      policy.within(least.mode, least.toString)
    }
  }
}

object Limits {
  private val MaxSets = 256

  /** While nothing is known. */
  def of(mode: Mode, why: String, spark: String): Limits =
    new Limits(
      if (mode == Mode.Enforce) Nil
      else Seq(ControlRule("unreachable", mode, Map.empty, None, why)),
      spark
    )
}

package org.apache.spark.sql.aqepilot.control

import org.apache.spark.sql.aqepilot.{Mode, NamedPolicy, PolicySet, Recent}

/** What the rules that hold make of policies. */
final class Limits(val rules: Seq[ControlRule], spark: String) {

  private val (ofQueries, ofAll) = rules.partition(_.isForQuery)
  private val known = Recent.map[(PolicySet, String), PolicySet](Limits.MaxSets)

  /** The same policies with what rules leave of their modes, but for rules on single queries. */
  def of(set: PolicySet, job: => String): PolicySet =
    if (rules.isEmpty || set.policies.isEmpty) set
    else {
      val name = job
      known.computeIfAbsent(
        (set, name),
        _ => {
          val lowered = set.policies.map(lower(_, name, None, ofAll))
          new PolicySet(
            lowered,
            set.problems,
            if (ofQueries.isEmpty) None else Some(ofQuery(name, _, _))
          )
        }
      )
    }

  private def ofQuery(job: String, policy: NamedPolicy, fingerprint: Option[String]) =
    lower(policy, job, fingerprint, ofQueries)

  private def lower(
      policy: NamedPolicy,
      job: String,
      fingerprint: Option[String],
      rules: Seq[ControlRule]
  ): NamedPolicy = {
    val own = rules.filter(_.isFor(policy, job, spark, fingerprint))
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

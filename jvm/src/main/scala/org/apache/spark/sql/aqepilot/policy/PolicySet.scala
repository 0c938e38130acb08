package org.apache.spark.sql.aqepilot.policy

import org.apache.spark.sql.aqepilot.decision.DecisionPoint
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.settings.Mode

/** One policy at one decision point.
  *
  * @param source
  *   `submitted` when name, text and `when` are the application's own configuration, else `session`
  * @param limit
  *   why its mode is less than the configuration says, if it is
  */
final case class NamedPolicy(
    name: String,
    point: DecisionPoint[_],
    text: String,
    when: Option[String],
    mode: Mode,
    revision: String,
    source: String,
    compiled: Either[PolicyError, CompiledPolicy],
    whenCompiled: Option[Either[PolicyError, CompiledPolicy]],
    limit: Option[String] = None
) {

  /** The same with no more than this mode. */
  def within(most: Mode, why: String): NamedPolicy =
    if (mode.rank <= most.rank) this else copy(mode = most, limit = Some(why))

  def error: Option[PolicyError] =
    compiled.left.toOption.orElse(whenCompiled.flatMap(_.left.toOption))

  def isLive: Boolean = error.isEmpty && mode != Mode.Off
}

/** The policies of a session, compiled; equal configuration texts share one instance.
  *
  * @param ofQuery
  *   limits a policy for the query with this fingerprint; none where no rule is about single queries
  * @param otherArms
  *   those of the experiment that these policies are an arm of
  */
final class PolicySet(
    val policies: Seq[NamedPolicy],
    val problems: Seq[Problem],
    ofQuery: Option[(NamedPolicy, Option[String]) => NamedPolicy] = None,
    val otherArms: Option[OtherArms] = None
) {

  private val live: Map[String, Seq[NamedPolicy]] = policies.filter(_.isLive).groupBy(_.point.name)

  /** Those that there are policies for, also ones that are off. */
  def points: Set[String] = policies.map(_.point.name).toSet

  /** Whether anybody is to be asked at a point. */
  def isAsked(point: DecisionPoint[_]): Boolean =
    at(point).nonEmpty || otherArms.exists(_.isAsked(point))

  def beside(others: OtherArms): PolicySet =
    new PolicySet(policies, problems, ofQuery, Some(others))

  /** Those to ask at a point, in order. */
  def at(point: DecisionPoint[_]): Seq[NamedPolicy] = live.getOrElse(point.name, Nil)

  /** Those to ask at a point about a query, in order. */
  def at(point: DecisionPoint[_], fingerprint: => Option[String]): Seq[NamedPolicy] =
    ofQuery.fold(at(point)) { within =>
      val query = fingerprint
      at(point).map(within(_, query)).filter(_.isLive)
    }
}

object PolicySet {
  val empty: PolicySet = new PolicySet(Nil, Nil)
}

/** Arms of an experiment that are asked beside a unit's own. */
trait OtherArms {

  /** Whether any of them is to be asked at a point. */
  def isAsked(point: DecisionPoint[_]): Boolean

  /** Looks whether an arm would decide otherwise.
    *
    * @param own
    *   what the own arm does here; none is Spark's own
    * @param decide
    *   what another's policies would do
    */
  def compare[D](point: DecisionPoint[D], executionId: Option[Long], own: Option[D])(
      decide: PolicySet => Option[D]
  ): Unit
}

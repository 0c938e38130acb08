package org.apache.spark.sql.aqepilot.run

import org.apache.spark.sql.aqepilot.policy.NamedPolicy
import org.apache.spark.sql.aqepilot.settings.Mode

/** What the control file lowers: the mode of all policies that each of its selectors is for.
  *
  * @param selectors
  *   by name, one of [[ControlRule.Selectors]]; none is for everything
  * @param until
  *   in milliseconds since 1970, from when on it holds no more; none is for ever
  */
final case class ControlRule(
    id: String,
    mode: Mode,
    selectors: Map[String, String],
    until: Option[Long],
    reason: String
) {
  import ControlRule._

  /** A driver whose clock is fast does not end it early, if it is fast by no more than [[MostClockSkewMillis]]. */
  def holds(now: Long): Boolean = until.forall(now < _ + MostClockSkewMillis)

  /** Whether it is for one query only. */
  def isForQuery: Boolean = selectors.contains(Fingerprint)

  /** @param jobs
    *   all names that the job has: it is for it by any of them
    * @param fingerprint
    *   of the query; none where it is not known, and then it is for it
    */
  def isFor(
      policy: NamedPolicy,
      jobs: Set[String],
      spark: String,
      fingerprint: Option[String]
  ): Boolean =
    selectors.forall {
      case (Policy, name)       => name == policy.name
      case (Revision, revision) => revision == policy.revision
      case (Point, point)       => point == policy.point.name
      case (Job, name)          => jobs.contains(name)
      case (Spark, version)     =>
        spark == version || spark.startsWith(version + ".") || spark.startsWith(version + "-")
      case (Fingerprint, own) => fingerprint.forall(_ == own)
      case _                  => true
    }

  /** For a person: what it does, to what, and why. */
  override def toString: String = {
    val to = selectors.toSeq.sorted.map { case (name, value) => s"$name=$value" }.mkString(", ")
    s"control rule $id: ${mode.name}" + (if (to.isEmpty) "" else s" for $to") +
      (if (reason.isEmpty) "" else s": $reason")
  }
}

object ControlRule {
  val MostClockSkewMillis: Long = 10 * 60 * 1000

  private val Policy = "policy"
  private val Revision = "revision"
  private val Point = "point"
  private val Job = "job"
  private val Spark = "spark"
  private val Fingerprint = "fingerprint"

  /** What a rule can be for, with its meaning. */
  val Selectors: Seq[(String, String)] = Seq(
    Policy -> "the policy's name",
    Point -> "the decision point",
    Revision -> "the policy's revision, 12 hexadecimal digits, as the record and aqepilot_status() have it",
    Job -> "query.job, or the job that the application was submitted as",
    Fingerprint -> "query.fingerprint; it also holds where the fingerprint is not known, as in df.rdd",
    Spark -> "Spark's version, or its beginning: 3.5, 3.5.9"
  )
}

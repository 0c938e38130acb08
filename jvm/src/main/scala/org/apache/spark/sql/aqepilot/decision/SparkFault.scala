package org.apache.spark.sql.aqepilot.decision

import scala.io.Source

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.spark.SparkRelease

/** Releases of one minor that have a fault.
  *
  * @param fixed
  *   the first without it; none where none is known
  */
final case class AffectedReleases(from: SparkRelease, fixed: Option[SparkRelease]) {

  def has(release: SparkRelease): Boolean =
    release.isSameMinor(from) && release >= from && fixed.forall(release < _)
}

/** A fault of Spark that some releases have, which a decision could take a query into.
  *
  * @param jira
  *   its number in Spark's issue tracker
  * @param shape
  *   name of the predicate on plans that tells whether a query could meet it
  * @param settings
  *   of Spark: only where all of these are true it is met
  * @param decisions
  *   by decision point, those that meet it: a strategy, a strategy and the build side, or
  *   [[SparkFault.OtherDistribution]]; `*` is any
  */
final case class SparkFault(
    jira: String,
    title: String,
    releases: Seq[AffectedReleases],
    shape: String,
    settings: Seq[String],
    decisions: Map[String, Seq[String]]
) {

  def in(release: SparkRelease): Option[AffectedReleases] = releases.find(_.has(release))

  def isMetBy(point: String, decision: String): Boolean =
    decisions.getOrElse(point, Nil).exists { pattern =>
      pattern == SparkFault.Any || pattern == decision || decision.startsWith(s"$pattern ")
    }
}

object SparkFault {
  val Any = "*"

  /** A shuffled join that Spark would broadcast or make a product of, or one of these that Spark would shuffle. */
  val OtherDistribution = "OTHER_DISTRIBUTION"
}

/** The table of Spark's faults, and the decisions that they forbid.
  *
  * The driver finds out which of a release's faults the shape of a plan could meet. These are a fact. Legality
  * looks up the decisions that meet them by this fact, so a replay refuses what the query's driver refused.
  */
object SparkFaults {

  private val Resource = "/org/apache/spark/sql/aqepilot/decision/spark_faults.json"

  /** The table as it is written, JSON. */
  def text: String = {
    val in = getClass.getResourceAsStream(Resource)
    try Source.fromInputStream(in, "UTF-8").mkString
    finally in.close()
  }

  lazy val all: Seq[SparkFault] = elements(new ObjectMapper().readTree(text)).map(read)

  /** The faults of a release, by the version that it gives itself. */
  def in(version: String): Seq[SparkFault] =
    SparkRelease.parse(version).fold(Seq.empty[SparkFault])(r => all.filter(_.in(r).isDefined))

  /** Why none of the decisions that an answer may lead to is carried out, if so.
    *
    * @param fact
    *   where the numbers of the faults stand that the plan could meet
    */
  def refusal(
      point: String,
      fact: String,
      decisions: Seq[String],
      facts: FactsRow
  ): Option[(Reason, String)] = {
    val met = facts.strings(fact)
    if (met.isEmpty) None
    else
      all.find(f => met.contains(f.jira) && decisions.exists(f.isMetBy(point, _)))
        .map(f => (Reason.SparkFault, described(f, facts.string("cluster.spark_version"))))
  }

  private def described(fault: SparkFault, version: Option[String]): String = {
    val where = version.flatMap(SparkRelease.parse).flatMap(fault.in).flatMap(_.fixed)
      .fold("no release of this minor is known to mend it")(fixed => s"Spark $fixed mends it")
    s"${fault.jira}: ${fault.title}; $where"
  }

  private def read(node: JsonNode): SparkFault = {
    val decisions = node.get("decisions")
    SparkFault(
      node.get("jira").asText,
      node.get("title").asText,
      elements(node.get("releases")).map(releases),
      node.get("shape").asText,
      texts(node.path("settings")),
      names(decisions).map(point => point -> texts(decisions.get(point))).toMap
    )
  }

  private def releases(node: JsonNode) = {
    def release(name: String) = Option(node.get(name)).flatMap(n => SparkRelease.parse(n.asText))
    AffectedReleases(release("from").get, release("fixed"))
  }

  private def elements(node: JsonNode): Seq[JsonNode] = (0 until node.size).map(node.get(_))

  private def texts(node: JsonNode): Seq[String] = elements(node).map(_.asText)

  private def names(node: JsonNode): Seq[String] = {
    val all = node.fieldNames()
    Iterator.continually(all).takeWhile(_.hasNext).map(_.next()).toList
  }
}

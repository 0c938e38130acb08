package org.apache.spark.sql.aqepilot.settings

import java.time.{LocalDate, OffsetDateTime, ZoneOffset}

import scala.util.Try

/** What ends a variant in an application.
  *
  * @param failedQueries
  *   after how many failed queries; none is never
  * @param driverPercent
  *   when asking took more than so much of the time of queries that took a minute altogether; none is never
  */
final case class StoppingRules(failedQueries: Option[Int], driverPercent: Option[Double])

object StoppingRules {
  val FailedQueries = "failed_queries"
  val DriverTime = "driver_time"
  val Never = "none"

  private val Part = "([a-z_]+)\\s*:\\s*(\\d{1,6}(?:\\.\\d{1,2})?)".r

  def parse(text: String): Either[String, StoppingRules] =
    if (text.trim == Never) Right(StoppingRules(None, None))
    else
      text.split(",", -1).map(_.trim).foldLeft[Either[String, StoppingRules]](
        Right(StoppingRules(None, None))
      ) {
        case (Right(rules), Part(FailedQueries, n)) if n.matches("[1-9]\\d*") =>
          Right(rules.copy(failedQueries = Some(n.toInt)))
        case (Right(rules), Part(DriverTime, percent)) if percent.toDouble > 0 =>
          Right(rules.copy(driverPercent = Some(percent.toDouble)))
        case (Right(_), part) =>
          Left(
            s"'$part' is no guard rail: $FailedQueries:<number>, $DriverTime:<percent>, or $Never alone"
          )
        case (wrong, _) => wrong
      }
}

/** The settings of an experiment. */
object ExperimentConf {
  // Of no other object: the settings of AqePilotConf are made of these.
  private val Prefix = "spark.aqepilot.experiment."

  val Metrics: Seq[String] =
    Seq("task_ms", "wall_ms", "cpu_ms", "core_ms", "shuffle_bytes", "spill_bytes")

  private def submitted(
      key: String,
      valueType: String,
      default: Option[String],
      meaning: String
  )(problem: String => Option[String]) =
    Setting(
      Prefix + key,
      SettingType(valueType, problem, (text: String) => text),
      default,
      "submitted",
      meaning
    )

  private def word(words: Seq[String])(value: String) =
    if (words.contains(value)) None else Some(s"'$value' is not one of ${words.mkString(", ")}")

  def time(value: String): Option[Long] = {
    val text = value.trim
    Try(OffsetDateTime.parse(text)).orElse(
      Try(LocalDate.parse(text).atStartOfDay.atOffset(ZoneOffset.UTC))
    ).toOption.map(_.toInstant.toEpochMilli)
  }

  private def isTime(value: String) =
    if (time(value).isDefined) None
    else Some(s"'$value' is not a time such as 2026-12-01T06:00:00Z, nor a day such as 2026-12-01")

  val Name: Setting[String] = submitted(
    "name",
    "text",
    None,
    "Names the experiment; another name draws anew. One experiment runs at a time."
  )(value =>
    if (value.matches("[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")) None
    else Some(s"'$value' is no name: letters, digits, _, . and -, 100 at most")
  )

  val Arms: Setting[String] = submitted(
    "arms",
    "<policies>:<percent>, ...",
    None,
    "Two or three arms with their weights, the control first: platform:90,platform_v2:10. An arm is a policy, several " +
      "joined by +, or spark for none. They take the place of spark.aqepilot.policies."
  )(value => Experiment.parseArms(value).left.toOption.map(_.mkString("; ")))

  val Unit: Setting[String] = submitted(
    "unit",
    Experiment.UnitKinds.map(_._1).mkString(" | "),
    Some(Experiment.JobRun),
    "What gets an arm: a run of a job, each query of a run, or a session."
  )(word(Experiment.UnitKinds.map(_._1)))

  val When: Setting[String] = submitted(
    "when",
    "boolean SQL expression over query.*",
    None,
    "The experiment is for units for which this is true; the others run as control. Looked at once for each unit: " +
      "for a run when the application starts, so that only query_run knows query.fingerprint and query.description."
  )(value => if (value.trim.nonEmpty) None else Some("it is empty"))

  val Salt: Setting[String] = submitted(
    "salt",
    "text",
    Some(""),
    "Draws anew under the same name."
  )(_ => None)

  val StartAt: Setting[String] = submitted(
    "start",
    "time",
    None,
    "When the experiment begins, as in 2026-12-01T06:00:00Z; a day begins at midnight UTC. Who begins before runs as " +
      "control."
  )(isTime)

  val EndAt: Setting[String] = submitted(
    "end",
    "time",
    None,
    "When it ends: who begins then or later runs as control. A unit that has begun keeps its arm."
  )(isTime)

  val Metric: Setting[String] = submitted(
    "metric",
    Metrics.mkString(" | "),
    Some(Metrics.head),
    "What decides, noted with each unit before there is an outcome."
  )(word(Metrics))

  val Guardrails: Setting[String] = submitted(
    "guardrails",
    s"${StoppingRules.FailedQueries}:<number>, ${StoppingRules.DriverTime}:<percent>; or ${StoppingRules.Never}",
    Some(s"${StoppingRules.FailedQueries}:1,${StoppingRules.DriverTime}:20"),
    "What ends an arm other than the control in this application, which goes on as control: so many failed queries of " +
      "units in which the arms differed, or that asking takes more than so much of the time of queries, once these took a minute."
  )(StoppingRules.parse(_).left.toOption)

  val settings: Seq[Setting[String]] =
    Seq(Name, Arms, Unit, When, Salt, StartAt, EndAt, Metric, Guardrails)

  /** Policies that the arms of a text name; none of a text that is wrong. */
  def policiesOf(arms: Option[String]): Seq[String] =
    arms.flatMap(Experiment.parseArms(_).toOption).toSeq.flatten.flatMap(_.policies).distinct

  /** What is done about a definition that is wrong. */
  val Instead = "the experiment does not run, and jobs run as its control"
}

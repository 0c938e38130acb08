package org.apache.spark.sql.aqepilot.policy

import java.time.{LocalDate, ZoneOffset}

import scala.util.Try

import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Mode}

/** The day from which a policy is not asked any more. */
private object Expiry {

  private val Part = ".expires"

  /** The day that it is, in UTC. */
  def today(): String = LocalDate.now(ZoneOffset.UTC).toString

  /** The same; empty where no policy expires.
    *
    * @param settings
    *   keys with their values, null where one is not set
    */
  def today(settings: Seq[(String, String)]): String =
    if (settings.exists { case (key, value) => value != null && isKey(key) }) today()
    else ""

  /** Whether a setting says when a policy expires. */
  def isKey(key: String): Boolean = key.endsWith(Part)

  /** Why a policy is off, if it is. A day that cannot be read has passed: nobody knows how long the policy was meant to be
    * asked.
    */
  def limit(expires: String): Option[(Mode, String)] = day(expires) match {
    case Some(day) if day.isAfter(LocalDate.now(ZoneOffset.UTC)) => None
    case Some(day) => Some((Mode.Off, s"expired on $day"))
    case None      => Some((Mode.Off, s"expires: '$expires' is no date"))
  }

  def problem(name: String, expires: String): Option[Problem] = {
    val key = s"${AqePilotConf.PolicyPrefix}$name$Part"
    if (day(expires).isEmpty)
      Some(
        Problem(
          Problem.SettingInvalid,
          s"$key: '$expires' is not a date like 2027-01-31; the policy is off",
          Some(name)
        )
      )
    else
      limit(expires).map { case (_, why) =>
        Problem(Problem.PolicyExpired, s"$key: the policy $why, and is not asked", Some(name))
      }
  }

  private def day(text: String): Option[LocalDate] = Try(LocalDate.parse(text)).toOption
}

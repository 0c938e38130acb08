package org.apache.spark.sql.aqepilot.settings

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.internal.SQLConf

/** A setting with a fixed name.
  *
  * @param where
  *   `any`, or `submitted` for one that only the submitted configuration may give
  * @tparam T
  *   what a value is read as
  */
final case class Setting[T](
    key: String,
    valueType: SettingType[T],
    default: Option[String],
    where: String,
    meaning: String
) {

  /** What is wrong with a value; None when it is good. */
  def problem(value: String): Option[String] = valueType.problem(value)

  /** The session's value as it is written, if it is given and good. */
  def textIn(conf: SQLConf): Option[String] =
    Option(conf.getConfString(key, null)).filter(problem(_).isEmpty)

  /** The session's value, if it is given and good. */
  def in(conf: SQLConf): Option[T] = textIn(conf).map(read)

  /** The submitted value, if it is given and good. */
  def submitted: Option[T] = Setting.submitted(key).filter(problem(_).isEmpty).map(read)

  /** The submitted value of a setting that has a default, else that. */
  def inForce: T = submitted.getOrElse(read(default.get))

  private def read(text: String): T = valueType.read(text.trim)
}

object Setting {

  /** The value in the application's own configuration (`spark-submit --conf`, spark-defaults.conf). */
  def submitted(key: String): Option[String] =
    SparkContext.getActive.flatMap(_.conf.getOption(key))
}

/** The values that a setting takes.
  *
  * @param name
  *   for a person: `boolean`, `deny | shadow | allow`
  * @param problem
  *   what is wrong with a value; None when it is good
  * @param read
  *   reads a good value
  */
final case class SettingType[T](
    name: String,
    problem: String => Option[String],
    read: String => T
)

object SettingType {

  val boolean: SettingType[Boolean] =
    SettingType("boolean", oneOf(Seq("true", "false")), _.toBoolean)

  def word(words: String*): SettingType[String] =
    SettingType(words.mkString(" | "), oneOf(words), word => word)

  val mode: SettingType[Mode] = word(Mode.words: _*).as(Mode.of)

  val loggedFacts: SettingType[LoggedFacts] = word(LoggedFacts.words: _*).as(LoggedFacts.of)

  def text(name: String = "text"): SettingType[String] = SettingType(
    name,
    value => if (value.trim.nonEmpty) None else Some("it is empty"),
    value => value
  )

  /** Uncompressed, above 0. */
  val bytes: SettingType[Long] = SettingType(
    "bytes",
    value =>
      try
        if (JavaUtils.byteStringAsBytes(value) > 0) None else Some(s"'$value' is not above 0")
      catch {
        case NonFatal(_) => Some(s"'$value' is not a size such as 512m, 8g or 1048576")
      },
    JavaUtils.byteStringAsBytes
  )

  /** Milliseconds.
    *
    * @param least
    *   as a value is written
    */
  def time(least: String): SettingType[Long] = SettingType(
    "time",
    value =>
      try
        if (JavaUtils.timeStringAsMs(value) >= JavaUtils.timeStringAsMs(least)) None
        else Some(s"'$value' is less than $least")
      catch {
        case NonFatal(_) => Some(s"'$value' is not a time such as 50ms, 2s or 1min")
      },
    JavaUtils.timeStringAsMs
  )

  /** From 1 on. */
  def count(most: Int): SettingType[Int] = SettingType(
    "number",
    value =>
      if (value.trim.matches("[1-9]\\d{0,8}") && value.trim.toInt <= most) None
      else Some(s"'$value' is not a whole number from 1 to $most"),
    _.toInt
  )

  val countFromZero: SettingType[Int] = SettingType(
    "number",
    value =>
      if (value.trim.matches("\\d{1,9}")) None
      else Some(s"'$value' is not a whole number from 0 to 999999999"),
    _.toInt
  )

  val factor: SettingType[Double] = SettingType(
    "factor",
    value =>
      if (value.trim.matches("\\d+(\\.\\d+)?") && value.trim.toDouble >= 1.0) None
      else Some(s"'$value' is not a number of 1.0 or more"),
    _.toDouble
  )

  private def oneOf(words: Seq[String])(value: String): Option[String] =
    if (words.contains(value)) None else Some(s"'$value' is not one of ${words.mkString(", ")}")

  implicit final private class Read[A](known: SettingType[A]) {
    def as[B](read: A => B): SettingType[B] =
      SettingType(known.name, known.problem, text => read(known.read(text)))
  }
}

package org.apache.spark.sql.aqepilot.settings

import java.math.BigInteger
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

/** One arm of an experiment.
  *
  * @param name
  *   its policies, joined by `+` in the order in which they are asked; `spark` for none
  * @param weight
  *   in hundredths of a percent: of 10,000 units, so many get this arm
  */
final case class Arm(name: String, weight: Int) {

  /** None for plain Spark. */
  def policies: Seq[String] = if (name == Experiment.Plain) Nil else name.split('+').toSeq
}

/** Who gets which policies, by a draw: `aqepilot/experiment/assignment.py` says the same of any unit afterwards, byte for
  * byte.
  *
  * @param arms
  *   two or three; the first is the control
  * @param unitKind
  *   one of [[Experiment.UnitKinds]]
  */
final case class Experiment(name: String, arms: Seq[Arm], unitKind: String, salt: String) {

  def control: Arm = arms.head

  /** The second arm has the lowest numbers, the third the highest, the control those between: who raises one of the two
    * at the control's cost moves nobody else.
    */
  def armOf(unit: String): Arm = {
    val number = Experiment.bucket(salt, name, unit)
    if (number < arms(1).weight) arms(1)
    else arms.lift(2).filter(number >= Experiment.Buckets - _.weight).getOrElse(control)
  }
}

object Experiment {
  val Buckets = 10000
  val Plain = "spark"
  val MostArms = 3

  val JobRun = "job_run"
  val QueryRun = "query_run"
  val Session = "session"

  /** Whose draw it is, with its meaning. */
  val UnitKinds: Seq[(String, String)] = Seq(
    JobRun -> "all queries of one run of a job share an arm; the unit is `job|run`",
    QueryRun -> "each query of a run by itself; the unit is `job|run|fingerprint`",
    Session -> "all queries of a session, of Thrift or Connect; the unit is the session's id"
  )

  private val Policy = "[a-z][a-z0-9_]*"
  private val ArmText = s"($Policy(?:\\+$Policy)*)\\s*:\\s*(\\d{1,3}(?:\\.\\d{1,2})?)".r

  /** Reads `platform:90,platform_v2:10`: two or three arms with percents of 100 together, the first the control.
    *
    * @return
    *   all that is wrong, or the arms
    */
  def parseArms(text: String): Either[Seq[String], Seq[Arm]] = {
    val parts = text.split(",", -1).map(_.trim).toSeq.map {
      case ArmText(name, weight) =>
        Right(Arm(name, new java.math.BigDecimal(weight).movePointRight(2).intValueExact))
      case part =>
        Left(
          s"'$part' is no arm: it has to be <policies>:<percent>, such as sales:90, sales+skew:10 or spark:50"
        )
    }
    val arms = parts.flatMap(_.toOption)
    val names = arms.map(_.name)
    val problems = parts.flatMap(_.left.toOption) ++
      names.diff(names.distinct).distinct.sorted.map(name => s"arm $name is there twice") ++
      names.filter(n => n != Plain && n.split('+').contains(Plain)).map(_ =>
        s"$Plain is an arm of its own: no policy stands beside it"
      )
    val total = arms.map(_.weight).sum
    val wholes = Seq(
      s"the weights are ${percent(total)} percent together, not 100" -> (total != Buckets),
      s"an experiment has two or three arms, not ${arms.size}" ->
        !(2 to MostArms).contains(arms.size)
    ).collect { case (what, true) => what }
    val all = if (problems.isEmpty) wholes else problems
    if (all.isEmpty) Right(arms) else Left(all)
  }

  private def percent(weight: Int): String =
    java.math.BigDecimal.valueOf(weight.toLong, 2).stripTrailingZeros.toPlainString

  /** A unit's number, 0 to 9,999: the first 8 bytes of the SHA-256 of `salt|experiment|unit` in UTF-8, as an unsigned
    * number with the highest byte first, modulo 10,000.
    */
  def bucket(salt: String, experiment: String, unit: String): Int = {
    val digest =
      MessageDigest.getInstance("SHA-256").digest(s"$salt|$experiment|$unit".getBytes(UTF_8))
    new BigInteger(1, digest.take(8)).mod(BigInteger.valueOf(Buckets.toLong)).intValue
  }
}

package org.apache.spark.sql.aqepilot.settings

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.aqepilot.reasons.{NearestNames, Problem}
import org.apache.spark.sql.aqepilot.settings.{Mode => PolicyMode}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, HashTable}
import org.apache.spark.sql.internal.SQLConf

/** A setting with a fixed name.
  *
  * @param where
  *   `any`, or `submitted` for one that only the submitted configuration may give
  * @param problem
  *   what is wrong with a value, None when it is good
  */
final case class Setting(
    key: String,
    valueType: String,
    default: Option[String],
    where: String,
    meaning: String,
    problem: String => Option[String]
)

/** The settings of aqepilot, all under `spark.aqepilot.`. */
object AqePilotConf {

  val Prefix = "spark.aqepilot."
  val PolicyPrefix: String = Prefix + "policy."

  private val PolicyName = "[a-z][a-z0-9_]*"

  private def oneOf(words: String*)(value: String): Option[String] =
    if (words.contains(value)) None else Some(s"'$value' is not one of ${words.mkString(", ")}")

  private def names(value: String): Option[String] =
    splitNames(value)
      .find(!_.matches(PolicyName))
      .map(n => s"'$n' is not a policy name: a lower-case letter, then a-z, 0-9 or _")

  private def bytes(value: String): Option[String] =
    try
      if (JavaUtils.byteStringAsBytes(value) > 0) None else Some(s"'$value' is not above 0")
    catch {
      case NonFatal(_) => Some(s"'$value' is not a size such as 512m, 8g or 1048576")
    }

  private def growth(value: String): Option[String] =
    if (value.trim.matches("\\d+(\\.\\d+)?") && value.trim.toDouble >= 1.0) None
    else Some(s"'$value' is not a number of 1.0 or more")

  val Policies: Setting = Setting(
    Prefix + "policies",
    "names",
    None,
    "any",
    "The policies that are asked, comma separated, in this order: a null answer asks the next one, " +
      "then Spark.",
    names
  )

  val Mode: Setting = Setting(
    Prefix + "mode",
    PolicyMode.words.mkString(" | "),
    Some("enforce"),
    "any",
    "The most that any policy may do: nothing, ask and record, or decide.",
    oneOf(PolicyMode.words: _*)
  )

  val Strict: Setting = Setting(
    Prefix + "strict",
    "boolean",
    Some("false"),
    "any",
    "Whether a submitted policy that is wrong fails the application at its start, instead of being " +
      "switched off with a warning.",
    oneOf("true", "false")
  )

  private def text(value: String): Option[String] =
    if (value.trim.nonEmpty) None else Some("it is empty")

  val Job: Setting = Setting(
    RunIdentity.JobKey,
    "text",
    None,
    "any",
    "Name of the job that runs, the same on each day. Unset: what the scheduler says, else spark.app.name. A session's " +
      "own counts where spark.aqepilot.session_policies is allow.",
    text
  )

  val Run: Setting = Setting(
    RunIdentity.RunKey,
    "text",
    None,
    "any",
    "Id of this run of the job, the same when it is tried again. Unset: what the scheduler says, else the " +
      "application's id. A session's own counts where spark.aqepilot.session_policies is allow.",
    text
  )

  val Attempt: Setting = Setting(
    RunIdentity.AttemptKey,
    "number",
    None,
    "submitted",
    "How many times this run has been started, this time included. Unset: the larger of " +
      s"${RunIdentity.AppAttemptKey} (YARN) and ${RunIdentity.AirflowTry} (Airflow).",
    count(1000000)
  )

  val OnRetry: Setting = Setting(
    Prefix + "on_retry",
    PolicyMode.words.mkString(" | "),
    Some("off"),
    "submitted",
    "The most that any policy may do in a run that has been started more than once.",
    oneOf(PolicyMode.words: _*)
  )

  val SessionPolicies: Setting = Setting(
    Prefix + "session_policies",
    "deny | shadow | allow",
    Some("allow"),
    "submitted",
    "What policies may do that a session brings by SQL, JDBC, Spark Connect or its own code: nothing, ask and record, " +
      "or decide. A policy is the session's where its text or its `when` is not the submitted one, or the submitted " +
      "spark.aqepilot.policies does not name it; and with deny or shadow no session raises a submitted mode.",
    oneOf("deny", "shadow", "allow")
  )

  val Control: Setting = Setting(
    Prefix + "control",
    "path",
    None,
    "submitted",
    "The control file, on any file system that Hadoop knows: it lowers policies' modes in all applications that read " +
      "it. `aqepilot control` writes it.",
    text
  )

  val ControlRefresh: Setting = Setting(
    Prefix + "control.refresh",
    "time",
    Some("30s"),
    "submitted",
    "How long after a reading of the control file the next one begins.",
    seconds("1s")
  )

  val ControlUnreachable: Setting = Setting(
    Prefix + "control.unreachable",
    PolicyMode.words.mkString(" | "),
    Some("shadow"),
    "submitted",
    "The most that any policy may do until the control file has been read for the first time.",
    oneOf(PolicyMode.words: _*)
  )

  val MaxBroadcastBytes: Setting = Setting(
    Prefix + "guard.max_broadcast_bytes",
    "bytes",
    None,
    "any",
    "Largest side, in uncompressed bytes, that a policy may have broadcast. Unset: the least of Spark's " +
      "own limit (8 GiB), spark.driver.maxResultSize, and what half of the driver's and of an " +
      "executor's memory for execution holds after guard.growth.",
    bytes
  )

  val MaxHashBuildBytes: Setting = Setting(
    Prefix + "guard.max_hash_build_bytes",
    "bytes",
    None,
    "any",
    "Largest hash table of one task, in bytes of memory, that a policy may have built for a shuffled " +
      "hash join, all that the joins of its stage build together. Unset: the memory that an executor has for " +
      "execution however much is cached there, divided by its task slots.",
    bytes
  )

  val Growth: Setting = Setting(
    Prefix + "guard.growth",
    "factor",
    Some(HashTable.Growth.toString),
    "any",
    "How much larger a hash table in memory is than its rows, uncompressed, beside the " +
      s"${HashTable.EntryBytes} bytes that it takes for each row.",
    growth
  )

  private def count(most: Int)(value: String): Option[String] =
    if (value.trim.matches("[1-9]\\d{0,8}") && value.trim.toInt <= most) None
    else Some(s"'$value' is not a whole number from 1 to $most")

  private def crossProducts(value: String): Option[String] =
    if (value.trim.matches("\\d{1,9}")) None
    else Some(s"'$value' is not a whole number from 0 to 999999999")

  val MaxPartitions: Setting = Setting(
    Prefix + "guard.max_partitions",
    "number",
    Some("100000"),
    "any",
    "Most partitions that a policy may give a shuffle, and most tasks that it may split a stage into or that a " +
      "Cartesian product of its has.",
    count(999999999)
  )

  val MaxCrossProducts: Setting = Setting(
    Prefix + "guard.max_cross_products",
    "number",
    Some("0"),
    "any",
    "Joins without a condition that an order of joins may have more than Spark's own order has.",
    crossProducts
  )

  val RingBytes: Setting = Setting(
    Prefix + "decisions.ring_bytes",
    "bytes",
    Some("16m"),
    "submitted",
    "Memory of the driver that keeps the newest decisions for aqepilot_decisions(); the oldest are " +
      "dropped, and counted.",
    bytes
  )

  val AllSessions: Setting = Setting(
    Prefix + "decisions.all_sessions",
    "boolean",
    Some("false"),
    "submitted",
    "Whether aqepilot_decisions() shows every session's decisions instead of the caller's own.",
    oneOf("true", "false")
  )

  val LogFacts: Setting = Setting(
    Prefix + "log.facts",
    LoggedFacts.words.mkString(" | "),
    Some(LoggedFacts.Full.name),
    "submitted",
    "How much of a decision's facts Spark's event log gets: all, all but arrays of numbers, which grow with the " +
      "partitions of a shuffle, or nothing. aqepilot_decisions() has all of them.",
    oneOf(LoggedFacts.words: _*)
  )

  private def seconds(least: String)(value: String): Option[String] =
    try
      if (JavaUtils.timeStringAsMs(value) >= JavaUtils.timeStringAsMs(least)) None
      else Some(s"'$value' is less than $least")
    catch {
      case NonFatal(_) => Some(s"'$value' is not a time such as 50ms, 2s or 1min")
    }

  val AskDeadline: Setting = Setting(
    Prefix + "ask.deadline",
    "time",
    Some("50ms"),
    "submitted",
    "How long an ask may take; then Spark decides. For SQL texts the processor time of all policies that are " +
      "asked; for a Python function the time until its answer is there, after which its process is ended.",
    seconds("1ms")
  )

  val PythonLoadTimeout: Setting = Setting(
    Prefix + "python.load_timeout",
    "time",
    Some("60s"),
    "submitted",
    "How long starting a worker process, or importing a Python function in it, may take.",
    seconds("1s")
  )

  val PythonWorkers: Setting = Setting(
    Prefix + "python.workers",
    "number",
    Some("1"),
    "submitted",
    "Worker processes: as many Python functions are asked at once.",
    count(64)
  )

  val PythonMemory: Setting = Setting(
    Prefix + "python.memory",
    "bytes",
    Some("2g"),
    "submitted",
    "Memory that a worker process may take for data (RLIMIT_DATA, on Linux); then a function's " +
      "allocation raises MemoryError.",
    bytes
  )

  val BreakerFailures: Setting = Setting(
    Prefix + "ask.breaker_failures",
    "number",
    Some("3"),
    "submitted",
    "After how many failures in a row a policy is not asked for a while: any failure of a Python function, of a " +
      "SQL text that it took too long or too much memory.",
    count(1000)
  )

  val BreakerTime: Setting = Setting(
    Prefix + "ask.breaker_time",
    "time",
    Some("30s"),
    "submitted",
    "How long that while is; twice as long each time it fails again, up to 16 times as long.",
    seconds("1ms")
  )

  val PythonAllowSession: Setting = Setting(
    Prefix + "python.allow_session",
    "boolean",
    Some("false"),
    "submitted",
    "Whether any session, those of Spark Connect and JDBC clients too, may name a Python function, " +
      "which runs as the driver's user.",
    oneOf("true", "false")
  )

  val PythonToken: Setting = Setting(
    Prefix + "python.token",
    "text",
    None,
    "any",
    "Stands for the Python functions that the session's own Python brought; aqepilot.use sets it.",
    value => if (value.matches("[0-9a-f]{32}")) None else Some("it is not 32 hexadecimal digits")
  )

  val settings: Seq[Setting] = Seq(
    Policies,
    Mode,
    Strict,
    Job,
    Run,
    Attempt,
    OnRetry,
    SessionPolicies,
    Control,
    ControlRefresh,
    ControlUnreachable,
    MaxBroadcastBytes,
    MaxHashBuildBytes,
    Growth,
    MaxPartitions,
    MaxCrossProducts,
    RingBytes,
    AllSessions,
    LogFacts,
    AskDeadline,
    BreakerFailures,
    BreakerTime,
    PythonLoadTimeout,
    PythonWorkers,
    PythonMemory,
    PythonAllowSession,
    PythonToken
  ) ++ ExperimentConf.settings

  /** Keys of one policy, `<name>` and `<point>` as placeholders: type, meaning. */
  val policySettings: Seq[(String, String, String)] = Seq(
    (
      PolicyPrefix + "<name>.<point>",
      "SQL expression over the point's facts, or python:<module>:<function>",
      "The policy's text at a decision point; null leaves the choice to the next policy, then Spark."
    ),
    (
      PolicyPrefix + "<name>.when",
      "boolean SQL expression over query.*",
      "The policy is asked only for queries for which this is true."
    ),
    (
      PolicyPrefix + "<name>.mode",
      PolicyMode.words.mkString(" | "),
      "This policy's mode; spark.aqepilot.mode is the most it can be. Default: enforce."
    )
  )

  /** Registers the settings with Spark, so that `SET` and `spark.conf.set` refuse a bad value.
    *
    * A bad ''submitted'' value passes: Spark checks that too, when it builds the session state, and would
    * fail the job at its first query. Such a value is reported by [[problems]] and its default holds.
    */
  def register(settings: Seq[Setting]): Unit = settings.foreach { setting =>
    if (ConfigEntry.findEntry(setting.key) == null) {
      val builder =
        if (setting.where == "submitted") SQLConf.buildStaticConf(setting.key)
        else SQLConf.buildConf(setting.key)
      builder
        .doc(setting.meaning)
        .stringConf
        .checkValue(isAllowed(setting, _), s"Allowed: ${setting.valueType}.")
        .createOptional
    }
  }

  /** Spark asks when it makes a session, too. */
  private def isAllowed(setting: Setting, value: String): Boolean =
    FailOpen("settings", true) {
      setting.problem(value).isEmpty || submitted(setting.key).contains(value)
    }

  /** The value in the application's own configuration (`spark-submit --conf`, spark-defaults.conf). */
  def submitted(key: String): Option[String] =
    SparkContext.getActive.flatMap(_.conf.getOption(key))

  /** The session's value, if it is given and good. */
  def get(conf: SQLConf, setting: Setting): Option[String] = {
    val value = conf.getConfString(setting.key, null)
    if (value != null && setting.problem(value).isEmpty) Some(value) else None
  }

  /** The submitted value, if it is given and good. */
  def getSubmitted(setting: Setting): Option[String] =
    submitted(setting.key).filter(setting.problem(_).isEmpty)

  /** What sessions may do by policies of their own: `deny`, `shadow` or `allow`; any other word is `deny`. */
  def sessionPolicies: String =
    submitted(SessionPolicies.key).fold("allow")(_ =>
      getSubmitted(SessionPolicies).getOrElse("deny")
    )

  def isTrue(value: Option[String]): Boolean = value.contains("true")

  /** The submitted value of a setting that has a default. */
  def inForce(setting: Setting): String = getSubmitted(setting).orElse(setting.default).get.trim

  def toMillis(value: String): Long = JavaUtils.timeStringAsMs(value)

  def toBytes(value: String): Long = JavaUtils.byteStringAsBytes(value)

  def splitNames(value: String): Seq[String] =
    value.split(",").map(_.trim).filter(_.nonEmpty).toSeq

  def isPolicyName(name: String): Boolean = name.matches(PolicyName)

  /** What is wrong with the `spark.aqepilot.*` settings among `all`, policies' texts aside.
    *
    * @param points
    *   names of the decision points
    */
  def problems(all: Map[String, String], points: Seq[String]): Seq[Problem] = {
    val ours = all.filter(_._1.startsWith(Prefix))
    val listed = (ours.get(Policies.key) ++ submitted(Policies.key)).flatMap(splitNames).toSeq ++
      ExperimentConf.policiesOf(ours.get(ExperimentConf.Arms.key))
    val invalid = settings.flatMap { s =>
      ours.get(s.key).flatMap(s.problem).map { what =>
        val code = if (s == Mode) Problem.ModeInvalid else Problem.SettingInvalid
        val instead =
          if (s == Mode) "it counts as off"
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
            val known = points ++ Seq("when", "mode")
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
        Seq(Job.key, Run.key).filter(key => ours.get(key).exists(!submitted(key).contains(_))).map {
          key =>
            Problem(
              Problem.RunIgnored,
              s"$key is the session's own, and ${SessionPolicies.key}=$sessionPolicies: what was submitted holds"
            )
        }
    invalid ++ unknown.distinct ++ ignored
  }
}

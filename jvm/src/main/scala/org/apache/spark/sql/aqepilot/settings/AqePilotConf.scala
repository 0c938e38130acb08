package org.apache.spark.sql.aqepilot.settings

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.aqepilot.settings.{Mode => PolicyMode}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, HashTable}
import org.apache.spark.sql.internal.SQLConf

/** The settings of aqepilot, all under `spark.aqepilot.`. */
object AqePilotConf {

  val Prefix = "spark.aqepilot."
  val PolicyPrefix: String = Prefix + "policy."

  private val PolicyName = "[a-z][a-z0-9_]*"

  private val names: SettingType[Seq[String]] = SettingType(
    "names",
    splitNames(_)
      .find(!_.matches(PolicyName))
      .map(n => s"'$n' is not a policy name: a lower-case letter, then a-z, 0-9 or _"),
    splitNames
  )

  val Policies: Setting[Seq[String]] = Setting(
    Prefix + "policies",
    names,
    None,
    "any",
    "The policies that are asked, comma separated, in this order: a null answer asks the next one, " +
      "then Spark."
  )

  val Mode: Setting[PolicyMode] = Setting(
    Prefix + "mode",
    SettingType.mode,
    Some("enforce"),
    "any",
    "The most that any policy may do: nothing, ask and record, or decide."
  )

  val Strict: Setting[Boolean] = Setting(
    Prefix + "strict",
    SettingType.boolean,
    Some("false"),
    "any",
    "Whether a submitted policy that is wrong fails the application at its start, instead of being " +
      "switched off with a warning."
  )

  val Job: Setting[String] = Setting(
    RunIdentity.JobKey,
    SettingType.text(),
    None,
    "any",
    "Name of the job that runs, the same on each day. Unset: what the scheduler says, else spark.app.name. A session's " +
      "own counts where spark.aqepilot.session_policies is allow."
  )

  val Run: Setting[String] = Setting(
    RunIdentity.RunKey,
    SettingType.text(),
    None,
    "any",
    "Id of this run of the job, the same when it is tried again. Unset: what the scheduler says, else the " +
      "application's id. A session's own counts where spark.aqepilot.session_policies is allow."
  )

  val Attempt: Setting[Int] = Setting(
    RunIdentity.AttemptKey,
    SettingType.count(1000000),
    None,
    "submitted",
    "How many times this run has been started, this time included. Unset: the larger of " +
      s"${RunIdentity.AppAttemptKey} (YARN) and ${RunIdentity.AirflowTry} (Airflow)."
  )

  val OnRetry: Setting[PolicyMode] = Setting(
    Prefix + "on_retry",
    SettingType.mode,
    Some("off"),
    "submitted",
    "The most that any policy may do in a run that has been started more than once."
  )

  val SessionPolicies: Setting[String] = Setting(
    Prefix + "session_policies",
    SettingType.word("deny", "shadow", "allow"),
    Some("allow"),
    "submitted",
    "What policies may do that a session brings by SQL, JDBC, Spark Connect or its own code: nothing, ask and record, " +
      "or decide. A policy is the session's where its text or its `when` is not the submitted one, or the submitted " +
      "spark.aqepilot.policies does not name it; and with deny or shadow no session raises a submitted mode."
  )

  val Control: Setting[String] = Setting(
    Prefix + "control",
    SettingType.text("path"),
    None,
    "submitted",
    "The control file, on any file system that Hadoop knows: it lowers policies' modes in all applications that read " +
      "it. `aqepilot control` writes it."
  )

  val ControlRefresh: Setting[Long] = Setting(
    Prefix + "control.refresh",
    SettingType.time("1s"),
    Some("30s"),
    "submitted",
    "How long after a reading of the control file the next one begins."
  )

  val ControlUnreachable: Setting[PolicyMode] = Setting(
    Prefix + "control.unreachable",
    SettingType.mode,
    Some("shadow"),
    "submitted",
    "The most that any policy may do until the control file has been read for the first time."
  )

  val History: Setting[String] = Setting(
    Prefix + "history",
    SettingType.text("path"),
    None,
    "submitted",
    "The pack of what past runs measured, on any file system that Hadoop knows: facts named history are read from it. " +
      "`aqepilot history build` writes it."
  )

  val HistoryRefresh: Setting[Long] = Setting(
    Prefix + "history.refresh",
    SettingType.time("1s"),
    Some("10min"),
    "submitted",
    "How long after a look at the pack's file the next one begins; a file that has changed is read."
  )

  val HistoryOwn: Setting[Boolean] = Setting(
    Prefix + "history.own",
    SettingType.boolean,
    Some("false"),
    "submitted",
    "Whether the application also remembers what its own queries measured, as soon as they have ended: for notebooks " +
      "and servers, which run a query again and again."
  )

  val HistoryLearn: Setting[Boolean] = Setting(
    Prefix + "history.learn",
    SettingType.boolean,
    None,
    "submitted",
    "Whether what came of each query's parts is measured when it ends, and written to Spark's event log. Unset: where " +
      "the submitted configuration has spark.aqepilot.policies, spark.aqepilot.history or spark.aqepilot.history.own."
  )

  /** Whether the application measures what came of its queries' parts. */
  def learns: Boolean = HistoryLearn.submitted.getOrElse(
    HistoryOwn.inForce ||
      Seq(Policies.key, History.key).exists(Setting.submitted(_).exists(_.trim.nonEmpty))
  )

  val MaxBroadcastBytes: Setting[Long] = Setting(
    Prefix + "guard.max_broadcast_bytes",
    SettingType.bytes,
    None,
    "any",
    "Largest side, in uncompressed bytes, that a policy may have broadcast. Unset: the least of Spark's " +
      "own limit (8 GiB), spark.driver.maxResultSize, and what half of the driver's and of an " +
      "executor's memory for execution holds after guard.growth."
  )

  val MaxHashBuildBytes: Setting[Long] = Setting(
    Prefix + "guard.max_hash_build_bytes",
    SettingType.bytes,
    None,
    "any",
    "Largest hash table of one task, in bytes of memory, that a policy may have built for a shuffled " +
      "hash join, all that the joins of its stage build together. Unset: the memory that an executor has for " +
      "execution however much is cached there, divided by its task slots."
  )

  val Growth: Setting[Double] = Setting(
    Prefix + "guard.growth",
    SettingType.factor,
    Some(HashTable.Growth.toString),
    "any",
    "How much larger a hash table in memory is than its rows, uncompressed, beside the " +
      s"${HashTable.EntryBytes} bytes that it takes for each row."
  )

  val MaxPartitions: Setting[Int] = Setting(
    Prefix + "guard.max_partitions",
    SettingType.count(999999999),
    Some("100000"),
    "any",
    "Most partitions that a policy may give a shuffle, and most tasks that it may split a stage into or that a " +
      "Cartesian product of its has."
  )

  val MaxCrossProducts: Setting[Int] = Setting(
    Prefix + "guard.max_cross_products",
    SettingType.countFromZero,
    Some("0"),
    "any",
    "Joins without a condition that an order of joins may have more than Spark's own order has."
  )

  val RingBytes: Setting[Long] = Setting(
    Prefix + "decisions.ring_bytes",
    SettingType.bytes,
    Some("16m"),
    "submitted",
    "Memory of the driver that keeps the newest decisions for aqepilot_decisions(); the oldest are " +
      "dropped, and counted."
  )

  val AllSessions: Setting[Boolean] = Setting(
    Prefix + "decisions.all_sessions",
    SettingType.boolean,
    Some("false"),
    "submitted",
    "Whether aqepilot_decisions() shows every session's decisions instead of the caller's own."
  )

  val LogFacts: Setting[LoggedFacts] = Setting(
    Prefix + "log.facts",
    SettingType.loggedFacts,
    Some(LoggedFacts.Full.name),
    "submitted",
    "How much of a decision's facts Spark's event log gets: all, all but arrays of numbers, which grow with the " +
      "partitions of a shuffle, or nothing. aqepilot_decisions() has all of them."
  )

  val Ui: Setting[Boolean] = Setting(
    Prefix + "ui",
    SettingType.boolean,
    Some("true"),
    "submitted",
    "Whether Spark's UI has the tab aqepilot, and its page of a query the query's decisions. Of a history server, " +
      "which has a setting of its own, it shows no application that was submitted with false."
  )

  val AskDeadline: Setting[Long] = Setting(
    Prefix + "ask.deadline",
    SettingType.time("1ms"),
    Some("50ms"),
    "submitted",
    "How long an ask may take; then Spark decides. For SQL texts the processor time of all policies that are " +
      "asked; for a Python function the time until its answer is there, after which its process is ended."
  )

  val PythonLoadTimeout: Setting[Long] = Setting(
    Prefix + "python.load_timeout",
    SettingType.time("1s"),
    Some("60s"),
    "submitted",
    "How long starting a worker process, or importing a Python function in it, may take."
  )

  val PythonWorkers: Setting[Int] = Setting(
    Prefix + "python.workers",
    SettingType.count(64),
    Some("1"),
    "submitted",
    "Worker processes: as many Python functions are asked at once."
  )

  val PythonMemory: Setting[Long] = Setting(
    Prefix + "python.memory",
    SettingType.bytes,
    Some("2g"),
    "submitted",
    "Memory that a worker process may take for data (RLIMIT_DATA, on Linux); then a function's " +
      "allocation raises MemoryError."
  )

  val BreakerFailures: Setting[Int] = Setting(
    Prefix + "ask.breaker_failures",
    SettingType.count(1000),
    Some("3"),
    "submitted",
    "After how many failures in a row a policy is not asked for a while: any failure of a Python function, of a " +
      "SQL text that it took too long or too much memory."
  )

  val BreakerTime: Setting[Long] = Setting(
    Prefix + "ask.breaker_time",
    SettingType.time("1ms"),
    Some("30s"),
    "submitted",
    "How long that while is; twice as long each time it fails again, up to 16 times as long."
  )

  val PythonAllowSession: Setting[Boolean] = Setting(
    Prefix + "python.allow_session",
    SettingType.boolean,
    Some("false"),
    "submitted",
    "Whether any session, those of Spark Connect and JDBC clients too, may name a Python function, " +
      "which runs as the driver's user."
  )

  val PythonToken: Setting[String] = Setting(
    Prefix + "python.token",
    SettingType(
      "text",
      value => if (value.matches("[0-9a-f]{32}")) None else Some("it is not 32 hexadecimal digits"),
      text => text
    ),
    None,
    "any",
    "Stands for the Python functions that the session's own Python brought; aqepilot.use sets it."
  )

  val settings: Seq[Setting[_]] = Seq(
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
    History,
    HistoryRefresh,
    HistoryOwn,
    HistoryLearn,
    MaxBroadcastBytes,
    MaxHashBuildBytes,
    Growth,
    MaxPartitions,
    MaxCrossProducts,
    RingBytes,
    AllSessions,
    LogFacts,
    Ui,
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
    ),
    (
      PolicyPrefix + "<name>.expires",
      "date, YYYY-MM-DD",
      "The first day, in UTC, on which the policy is not asked any more. Unset: it never expires."
    )
  )

  /** What a policy has beside its texts. */
  val policyParts: Seq[String] = Seq("when", "mode", "expires")

  /** Registers the settings with Spark, so that `SET` and `spark.conf.set` refuse a bad value.
    *
    * A bad ''submitted'' value passes: Spark checks that too, when it builds the session state, and would
    * fail the job at its first query. Such a value is reported by [[problems]] and its default holds.
    */
  def register(settings: Seq[Setting[_]]): Unit = settings.foreach { setting =>
    if (ConfigEntry.findEntry(setting.key) == null) {
      val builder =
        if (setting.where == "submitted") SQLConf.buildStaticConf(setting.key)
        else SQLConf.buildConf(setting.key)
      builder
        .doc(setting.meaning)
        .stringConf
        .checkValue(isAllowed(setting, _), s"Allowed: ${setting.valueType.name}.")
        .createOptional
    }
  }

  /** Spark asks when it makes a session, too. */
  private def isAllowed(setting: Setting[_], value: String): Boolean =
    FailOpen("settings", true) {
      setting.problem(value).isEmpty || Setting.submitted(setting.key).contains(value)
    }

  /** What sessions may do by policies of their own: `deny`, `shadow` or `allow`; any other word is `deny`. */
  def sessionPolicies: String =
    Setting.submitted(SessionPolicies.key).fold("allow")(_ =>
      SessionPolicies.submitted.getOrElse("deny")
    )

  def splitNames(value: String): Seq[String] =
    value.split(",").map(_.trim).filter(_.nonEmpty).toSeq

  def isPolicyName(name: String): Boolean = name.matches(PolicyName)
}

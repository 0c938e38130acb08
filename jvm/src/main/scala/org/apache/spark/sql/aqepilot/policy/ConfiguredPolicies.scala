package org.apache.spark.sql.aqepilot.policy

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.decision.{DecisionPoints, Health}
import org.apache.spark.sql.aqepilot.facts.Runs
import org.apache.spark.sql.aqepilot.policy.python.{Caller, PythonText}
import org.apache.spark.sql.aqepilot.reasons.Problem
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, ExperimentConf, Mode, Setting}
import org.apache.spark.sql.aqepilot.spark.Recent
import org.apache.spark.sql.internal.SQLConf

/** The policies that a configuration names, compiled; equal texts share one [[PolicySet]]. */
object ConfiguredPolicies {

  private val MaxSets = 256

  private val MaxListedChars = 10000
  private val MaxTextChars = 1 << 20
  private val MaxChars = 8L << 20

  private val cache =
    Recent.weighed[Seq[String], PolicySet](MaxSets, 4 * MaxChars)(_.map(chars).sum)

  /** The listed policies of a session's configuration. Costs a few look-ups when none is listed.
    *
    * @param listed
    *   names with commas between them
    */
  def of(conf: SQLConf, listed: String): PolicySet =
    if (listed.isEmpty) PolicySet.empty
    else {
      val before = latest
      if (before != null && before.isOf(conf, listed)) before.set
      else read(conf, listed)
    }

  private def read(conf: SQLConf, listed: String): PolicySet =
    if (listed.length > MaxListedChars)
      tooMuch(s"${AqePilotConf.Policies.key} has more than $MaxListedChars characters")
    else {
      val names = AqePilotConf.splitNames(listed)
      val keys = AqePilotConf.Mode.key +: names.flatMap(keysOf)
      // Of a text that is too long only the beginning is read, and the text is not kept.
      val values = keys.map(key => conf.getConfString(key, null)).map { text =>
        if (chars(text) > MaxTextChars) text.take(MaxTextChars + 1) else text
      }
      lazy val token = AqePilotConf.PythonToken.in(conf)
      val limit = SparkContext.getActive.flatMap(Runs.limit)
      val app = SparkContext.getActive.fold("")(_.applicationId)
      val today = Expiry.today(keys.zip(values) ++ keys.map(key => (key, submittedEnd(key))))
      val texts =
        listed +: app +: limit.toString +: today +: PolicyTexts.version(values, token) +: values
      val known = cache.get(texts)
      if (known != null) {
        if (!values.exists(PythonText.is))
          latest = new Latest(app, listed, today, keys.toArray, values.toArray, known)
        known
      } else if (values.map(chars).sum > MaxChars)
        tooMuch(s"the policies' texts have more than $MaxChars characters altogether")
      else {
        // Of what was read just now: were a setting read again, another thread could have changed it meanwhile, and
        // a set with a mode would be kept for those who have set another.
        val read = keys.zip(values).filter(_._2 != null).toMap
        val loaded = load(names, read.get, limit, Caller(_, token, waits = false))
        if (!loaded.policies.exists(_.error.exists(_.isPassing))) cache.put(texts, loaded)
        loaded
      }
    }

  @volatile private var latest: Latest = _

  private def chars(text: String): Long = if (text == null) 0L else text.length.toLong

  private def tooMuch(what: String) =
    new PolicySet(Nil, Seq(Problem(Problem.PolicyTextInvalid, s"$what: no policy is asked.")))

  /** A set that was looked up. Each rule of a planning looks it up again, mostly by the same texts: to compare these by
    * identity is faster than to make a key of them.
    *
    * @param today
    *   empty where no policy expires
    * @param texts
    *   of the keys, as the configuration has them; none names a Python function, whose code may change
    */
  final private class Latest(
      app: String,
      listed: String,
      today: String,
      keys: Array[String],
      texts: Array[String],
      val set: PolicySet
  ) {
    def isOf(conf: SQLConf, listed: String): Boolean =
      listed == this.listed && (today.isEmpty || today == Expiry.today()) && SparkContext.getActive.exists(
        _.applicationId == app
      ) && {
        var i = 0
        while (i < keys.length && (conf.getConfString(keys(i), null) eq texts(i))) i += 1
        i == keys.length
      }
  }

  private val Submitted = "submitted"

  private val parts = DecisionPoints.names ++ AqePilotConf.policyParts
  private val keys = Recent.map[String, Seq[String]](MaxSets)

  private def keysOf(name: String): Seq[String] =
    keys.computeIfAbsent(name, _ => parts.map(AqePilotConf.PolicyPrefix + name + "." + _))

  /** First 12 hex digits of the SHA-256 of a policy's text, its `when`, and the code that the text names. */
  private def revision(text: String, when: Option[String], code: Option[String] = None): String =
    MessageDigest
      .getInstance("SHA-256")
      .digest((Seq(text, when.getOrElse("")) ++ code).mkString("\u0000").getBytes(UTF_8))
      .take(6)
      .map(b => f"$b%02x")
      .mkString

  /** The named policies of the application's own configuration. Waits for Python functions to be loaded. */
  def submitted(
      names: Seq[String],
      get: String => Option[String],
      limit: Option[(Mode, String)]
  ): PolicySet = load(names, get, limit, Caller(_, None, waits = true))

  /** Compiles the named policies out of a configuration.
    *
    * @param limit
    *   the most that any policy may do, whatever the configuration says, and why
    * @param caller
    *   by whether a text is submitted
    */
  private def load(
      names: Seq[String],
      get: String => Option[String],
      limit: Option[(Mode, String)],
      caller: Boolean => Caller
  ): PolicySet = {
    val most = get(AqePilotConf.Mode.key).fold[Mode](Mode.Enforce)(Mode.of)
    val (policies, problems) = names.distinct.map { name =>
      def at(part: String) = get(AqePilotConf.PolicyPrefix + name + "." + part)
      val texts = DecisionPoints.all.flatMap(p => at(p.name).map(p -> _))
      val when = at("when")
      val modeWord = at("mode").getOrElse(Mode.Enforce.name)
      val expires = at("expires")
      val expired = expires.flatMap(Expiry.limit)
      val policies = texts.map { case (point, text) =>
        val isSubmitted = submittedPart(name, point.name).contains(text)
        val compiled = PolicyTexts.compile(text, point, caller(isSubmitted))
        val policy = NamedPolicy(
          name,
          point,
          text,
          when,
          Mode.of(modeWord).atMost(most),
          revision(text, when, compiled.toOption.flatMap(_.code)),
          if (isSubmitted && isListed(name) && submittedPart(name, "when") == when) Submitted
          else "session",
          compiled,
          when.map(PolicyTexts.compileWhen)
        )
        (limit ++ expired ++ ofSessions(policy)).foldLeft(policy) { case (p, (mode, why)) =>
          p.within(mode, why)
        }
      }
      val off = DecisionPoints.faults.keys.toSeq.filter(at(_).isDefined).flatMap(Health.problem)
      (
        policies,
        off ++ expires.flatMap(Expiry.problem(name, _)) ++
          problemsOf(name, modeWord, policies, isDefined = texts.nonEmpty || off.nonEmpty)
      )
    }.unzip
    new PolicySet(policies.flatten, problems.flatten)
  }

  private def submittedPart(name: String, part: String): Option[String] =
    Setting.submitted(s"${AqePilotConf.PolicyPrefix}$name.$part")

  /** The submitted day of a key on which a policy expires; null of other keys, and where there is none. */
  private def submittedEnd(key: String): String =
    if (Expiry.isKey(key)) Setting.submitted(key).orNull else null

  private def isListed(name: String): Boolean =
    Setting.submitted(AqePilotConf.Policies.key).exists(
      AqePilotConf.splitNames(_).contains(name)
    ) || ExperimentConf.policiesOf(Setting.submitted(ExperimentConf.Arms.key)).contains(name)

  /** The most that a policy may do where sessions may not bring their own, and why: a session makes no submitted policy
    * last longer.
    */
  private def ofSessions(policy: NamedPolicy): Seq[(Mode, String)] = {
    val allowed = AqePilotConf.sessionPolicies
    def submittedMode(key: String) = Setting.submitted(key).fold[Mode](Mode.Enforce)(Mode.of)
    if (allowed == "allow") Nil
    else {
      val most =
        if (policy.source != Submitted) { if (allowed == "shadow") Mode.Shadow else Mode.Off }
        else
          submittedMode(s"${AqePilotConf.PolicyPrefix}${policy.name}.mode")
            .atMost(submittedMode(AqePilotConf.Mode.key))
      val expired = submittedPart(policy.name, "expires").flatMap(Expiry.limit)
      (most, s"${AqePilotConf.SessionPolicies.key}=$allowed") +: expired.toSeq
    }
  }

  private def problemsOf(
      name: String,
      mode: String,
      policies: Seq[NamedPolicy],
      isDefined: Boolean
  ): Seq[Problem] = {
    val undefined =
      if (isDefined) None
      else
        Some(
          Problem(
            Problem.PolicyNotDefined,
            s"${AqePilotConf.Policies.key} names '$name', but none of " +
              DecisionPoints.names.map(AqePilotConf.PolicyPrefix + name + "." + _).mkString(", ") +
              " is set",
            Some(name)
          )
        )
    val badMode =
      if (Mode.words.contains(mode)) None
      else
        Some(
          Problem(
            Problem.ModeInvalid,
            s"${AqePilotConf.PolicyPrefix}$name.mode: '$mode' is not one of " +
              s"${Mode.words.mkString(", ")}; it counts as off",
            Some(name)
          )
        )
    val texts = policies.flatMap(p => p.error.map(p -> _)).map { case (p, e) =>
      val key =
        if (p.compiled.isLeft) p.point.name
        else "when"
      val place = (e.line.map(l => s"line $l") ++ e.column.map(c => s"column $c")).mkString(", ")
      Problem(
        Problem.PolicyTextInvalid,
        s"${AqePilotConf.PolicyPrefix}$name.$key" + (if (place.isEmpty) "" else s", $place") +
          s": ${e.message} The policy is off at ${p.point.name}.",
        Some(name),
        Some(p.point.name)
      )
    }
    (undefined ++ badMode ++ texts).toSeq
  }
}

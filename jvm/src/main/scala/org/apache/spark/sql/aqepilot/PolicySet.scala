package org.apache.spark.sql.aqepilot

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.spark.sql.aqepilot.python.Caller
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.decision.{DecisionPoint, DecisionPoints, Problem}
import io.aqepilot.policy.{CompiledPolicy, PolicyError}

/** How far a policy may go. */
sealed abstract class Mode(val name: String, val rank: Int) {
  def atMost(other: Mode): Mode = if (rank <= other.rank) this else other
}

object Mode {
  case object Off extends Mode("off", 0)
  case object Shadow extends Mode("shadow", 1)
  case object Enforce extends Mode("enforce", 2)

  private val all = Seq(Off, Shadow, Enforce)

  val words: Seq[String] = all.map(_.name)

  /** An unknown word counts as off: nobody asked for a decision. */
  def of(word: String): Mode = all.find(_.name == word).getOrElse(Off)
}

/** One policy at one decision point.
  *
  * @param source
  *   `submitted` when the text is the application's own configuration, else `session`
  */
final case class NamedPolicy(
    name: String,
    point: DecisionPoint,
    text: String,
    when: Option[String],
    mode: Mode,
    revision: String,
    source: String,
    compiled: Either[PolicyError, CompiledPolicy],
    whenCompiled: Option[Either[PolicyError, CompiledPolicy]]
) {

  def error: Option[PolicyError] =
    compiled.left.toOption.orElse(whenCompiled.flatMap(_.left.toOption))

  def isLive: Boolean = error.isEmpty && mode != Mode.Off
}

/** The policies of a session, compiled; equal configuration texts share one instance. */
final class PolicySet(val policies: Seq[NamedPolicy], val problems: Seq[Problem]) {

  private val live: Map[String, Seq[NamedPolicy]] = policies.filter(_.isLive).groupBy(_.point.name)

  /** Those to ask at a point, in order. */
  def at(point: DecisionPoint): Seq[NamedPolicy] = live.getOrElse(point.name, Nil)
}

object PolicySet {

  val empty: PolicySet = new PolicySet(Nil, Nil)

  private val MaxSets = 256

  private val cache = Recent.map[Seq[String], PolicySet](MaxSets)

  /** The session's policies. Costs a few look-ups when none is named. */
  def of(conf: SQLConf): PolicySet = {
    val listed = conf.getConfString(AqePilotConf.Policies.key, "")
    if (listed.isEmpty) empty
    else {
      val names = AqePilotConf.splitNames(listed)
      val keys = AqePilotConf.Mode.key +: names.flatMap(keysOf)
      val values = keys.map(conf.getConfString(_, null))
      val token = AqePilotConf.get(conf, AqePilotConf.PythonToken)
      val texts = listed +: PolicyTexts.version(values, token) +: values
      val known = cache.get(texts)
      if (known != null) known
      else {
        // Of what was read just now: were a setting read again, another thread could have changed it meanwhile, and
        // a set with a mode would be kept for those who have set another.
        val read = keys.zip(values).filter(_._2 != null).toMap
        val loaded = load(names, read.get, Caller(_, token, waits = false))
        cache.put(texts, loaded)
        loaded
      }
    }
  }

  private val Submitted = "submitted"

  private val parts = DecisionPoints.names ++ Seq("when", "mode")
  private val keys = Recent.map[String, Seq[String]](MaxSets)

  private def keysOf(name: String): Seq[String] =
    keys.computeIfAbsent(name, _ => parts.map(AqePilotConf.PolicyPrefix + name + "." + _))

  /** First 12 hex digits of the SHA-256 of a policy's text, its `when`, and the code that the text names. */
  def revision(text: String, when: Option[String], code: Option[String] = None): String =
    MessageDigest
      .getInstance("SHA-256")
      .digest((Seq(text, when.getOrElse("")) ++ code).mkString("\u0000").getBytes(UTF_8))
      .take(6)
      .map(b => f"$b%02x")
      .mkString

  /** The named policies of the application's own configuration. Waits for Python functions to be loaded. */
  def submitted(names: Seq[String], get: String => Option[String]): PolicySet =
    load(names, get, Caller(_, None, waits = true))

  /** Compiles the named policies out of a configuration.
    *
    * @param caller
    *   by whether a text is submitted
    */
  private def load(
      names: Seq[String],
      get: String => Option[String],
      caller: Boolean => Caller
  ): PolicySet = {
    val most = get(AqePilotConf.Mode.key).map(Mode.of).getOrElse(Mode.Enforce)
    val (policies, problems) = names.distinct.map { name =>
      def at(part: String) = get(AqePilotConf.PolicyPrefix + name + "." + part)
      val texts = DecisionPoints.all.flatMap(p => at(p.name).map(p -> _))
      val when = at("when")
      val modeWord = at("mode").getOrElse(Mode.Enforce.name)
      val policies = texts.map { case (point, text) =>
        val from = source(name, point, text)
        val compiled = PolicyTexts.compile(text, point, caller(from == Submitted))
        NamedPolicy(
          name,
          point,
          text,
          when,
          Mode.of(modeWord).atMost(most),
          revision(text, when, compiled.toOption.flatMap(_.code)),
          from,
          compiled,
          when.map(PolicyTexts.compileWhen)
        )
      }
      (policies, problemsOf(name, modeWord, policies))
    }.unzip
    new PolicySet(policies.flatten, problems.flatten)
  }

  private def source(name: String, point: DecisionPoint, text: String): String =
    if (AqePilotConf.submitted(s"${AqePilotConf.PolicyPrefix}$name.${point.name}").contains(text))
      Submitted
    else "session"

  private def problemsOf(name: String, mode: String, policies: Seq[NamedPolicy]): Seq[Problem] = {
    val undefined =
      if (policies.nonEmpty) None
      else
        Some(
          Problem(
            Problem.PolicyNotDefined,
            s"${AqePilotConf.Policies.key} names '$name', but none of " +
              DecisionPoints.names.map(AqePilotConf.PolicyPrefix + name + "." + _).mkString(", ") +
              " is set"
          )
        )
    val badMode =
      if (Mode.words.contains(mode)) None
      else
        Some(
          Problem(
            Problem.ModeInvalid,
            s"${AqePilotConf.PolicyPrefix}$name.mode: '$mode' is not one of " +
              s"${Mode.words.mkString(", ")}; it counts as off"
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
          s": ${e.message} The policy is off at ${p.point.name}."
      )
    }
    (undefined ++ badMode ++ texts).toSeq
  }
}

package org.apache.spark.sql.aqepilot.policy

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, DecisionPoints}
import org.apache.spark.sql.aqepilot.policy.python.{
  Caller,
  PythonPolicy,
  PythonText,
  PythonWorkers,
  SessionFunctions
}
import org.apache.spark.sql.aqepilot.policy.sql.PolicyCompiler
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.types.BooleanType

/** A policy's text at a point, SQL or the name of a Python function, made ready to answer. */
object PolicyTexts {

  /** @param caller
    *   who names it
    */
  def compile(
      text: String,
      point: DecisionPoint[_],
      caller: Caller
  ): Either[PolicyError, CompiledPolicy] =
    if (PythonText.is(text)) PythonPolicy.compile(text, point, caller)
    else PolicyCompiler.compile(text, point).map(bounded(_))

  /** The condition under which a policy is meant. */
  def compileWhen(text: String): Either[PolicyError, CompiledPolicy] =
    PolicyCompiler.compile(text, DecisionPoints.whenFacts, BooleanType).map(bounded(_))

  private def bounded(policy: CompiledPolicy): CompiledPolicy = {
    val failures = AqePilotConf.BreakerFailures.inForce
    val millis = AqePilotConf.BreakerTime.inForce
    new BoundedPolicy(policy, new Breaker(failures, millis * 1000 * 1000))
  }

  /** Beside the texts, what decides which functions they name, and whether those are loaded.
    *
    * @param token
    *   of the session that has the texts, looked up where one names a Python function
    */
  def version(texts: Seq[String], token: => Option[String]): String =
    if (!texts.exists(PythonText.is)) ""
    else {
      val app = org.apache.spark.SparkContext.getActive.fold("")(_.applicationId)
      s"$app ${SessionFunctions.ofDriver.version} ${PythonWorkers.version} ${token.getOrElse("")}"
    }
}

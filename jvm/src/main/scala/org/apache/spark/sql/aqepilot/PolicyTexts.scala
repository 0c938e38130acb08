package org.apache.spark.sql.aqepilot

import org.apache.spark.sql.aqepilot.python.{PythonPolicy, PythonText, SessionFunctions}
import org.apache.spark.sql.types.BooleanType

import io.aqepilot.decision.{DecisionPoint, DecisionPoints}
import io.aqepilot.policy.{BoundedPolicy, Breaker, CompiledPolicy, PolicyCompiler, PolicyError}

/** A policy's text at a point, SQL or the name of a Python function, made ready to answer. */
object PolicyTexts {

  /** @param isSubmitted
    *   whether the text is the application's own configuration
    */
  def compile(
      text: String,
      point: DecisionPoint,
      isSubmitted: Boolean
  ): Either[PolicyError, CompiledPolicy] =
    if (PythonText.is(text)) PythonPolicy.compile(text, point, isSubmitted)
    else PolicyCompiler.compile(text, point).map(bounded(_))

  /** The condition under which a policy is meant. */
  def compileWhen(text: String): Either[PolicyError, CompiledPolicy] =
    PolicyCompiler.compile(text, DecisionPoints.whenFacts, BooleanType).map(bounded(_))

  private def bounded(policy: CompiledPolicy): CompiledPolicy = {
    val failures = AqePilotConf.inForce(AqePilotConf.BreakerFailures).toInt
    val millis = AqePilotConf.toMillis(AqePilotConf.inForce(AqePilotConf.BreakerTime))
    new BoundedPolicy(policy, new Breaker(failures, millis * 1000 * 1000))
  }

  /** What else than a text tells what it stands for: which functions sessions brought to this application. */
  def version(texts: Seq[String]): String =
    if (!texts.exists(PythonText.is)) ""
    else {
      val app = org.apache.spark.SparkContext.getActive.fold("")(_.applicationId)
      s"$app ${SessionFunctions.version}"
    }
}

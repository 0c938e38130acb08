package org.apache.spark.sql.aqepilot

import org.apache.spark.sql.aqepilot.python.{PythonPolicy, PythonText, SessionFunctions}

import io.aqepilot.decision.DecisionPoint
import io.aqepilot.policy.{CompiledPolicy, PolicyCompiler, PolicyError}

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
    else PolicyCompiler.compile(text, point)

  /** What else than a text tells what it stands for: which functions sessions brought to this application. */
  def version(texts: Seq[String]): String =
    if (!texts.exists(PythonText.is)) ""
    else {
      val app = org.apache.spark.SparkContext.getActive.fold("")(_.applicationId)
      s"$app ${SessionFunctions.version}"
    }
}

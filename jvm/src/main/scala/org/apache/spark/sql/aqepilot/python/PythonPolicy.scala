package org.apache.spark.sql.aqepilot.python

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.{AqePilotConf, FailOpen}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

import io.aqepilot.decision.{DecisionPoint, Reason}
import io.aqepilot.policy.{CompiledPolicy, EvaluationFailure, PolicyError}

/** A policy that a Python function is, asked in a worker process.
  *
  * At `join_reorder` it gives the whole order.
  */
final class PythonPolicy(workers: PythonWorkers, function: PythonFunction) extends CompiledPolicy {

  override val text: String = function.text.text

  override val answer: DataType = function.point.alternative.getOrElse(function.point.answer)

  override def code: Option[String] = function.revision

  override def eval(facts: InternalRow): Either[EvaluationFailure, Any] =
    CompiledPolicy.guarded(e => EvaluationFailure(FailOpen.short(e), Reason.InternalError)) {
      workers.ask(function, facts, answer)
    }
}

object PythonPolicy {

  /** The policy that a text names, loaded by a worker.
    *
    * @param isSubmitted
    *   whether the text is the application's own configuration
    */
  def compile(
      text: String,
      point: DecisionPoint,
      isSubmitted: Boolean
  ): Either[PolicyError, CompiledPolicy] =
    for {
      named <- PythonText.of(text)
      _ <- refusal(named, isSubmitted).toLeft(())
      sc <- SparkContext.getActive.toRight(error(PolicyError.InternalError, "No Spark runs here."))
      workers = PythonWorkers.get(sc)
      function <- workers.load(named, point).left.map { why =>
        error(PolicyError.PythonLoadFailed, s"${named.text} cannot be loaded: $why")
      }
    } yield new PythonPolicy(workers, function)

  private def refusal(named: PythonText, isSubmitted: Boolean): Option[PolicyError] = {
    val isKnown = SessionFunctions.get(named.text).isDefined
    named match {
      case _: PickledFunction if !isKnown =>
        val message =
          s"${named.text} stands for a function that no session of this driver brought: pass the " +
            "function itself to aqepilot.use(spark, ...)."
        Some(error(PolicyError.PythonLoadFailed, message))
      case _: ImportedFunction if !isKnown && !isSubmitted && !isSessionAllowed =>
        val message =
          s"${named.text}: a Python function runs as the driver's user, so a session's settings may not " +
            "name one. Submit it with the application, pass it to aqepilot.use(spark, ...) in the driver's " +
            s"own Python, or submit ${AqePilotConf.PythonAllowSession.key}=true."
        Some(error(PolicyError.PythonNotAllowed, message))
      case _ => None
    }
  }

  private def isSessionAllowed: Boolean =
    AqePilotConf.isTrue(AqePilotConf.getSubmitted(AqePilotConf.PythonAllowSession))

  private def error(code: String, message: String) =
    PolicyError(code, message, Some(1), Some(1), Nil)
}

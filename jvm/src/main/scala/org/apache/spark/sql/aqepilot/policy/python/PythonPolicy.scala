package org.apache.spark.sql.aqepilot.policy.python

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.decision.DecisionPoint
import org.apache.spark.sql.aqepilot.policy.{CompiledPolicy, EvaluationFailure, PolicyError}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

/** A policy that a Python function is, asked in a worker process of its owner.
  *
  * At `join_reorder` it gives the whole order.
  */
final class PythonPolicy(val owner: PythonOwner, function: PythonFunction) extends CompiledPolicy {

  override val text: String = function.text.text

  override val answer: DataType = function.point.alternative.getOrElse(function.point.answer)

  override def code: Option[String] = function.revision

  override def eval(facts: InternalRow): Either[EvaluationFailure, Any] =
    CompiledPolicy.guarded(e => EvaluationFailure(FailOpen.short(e), Reason.InternalError)) {
      SparkContext.getActive.map(PythonWorkers.of(_, owner)) match {
        case Some(Some(workers)) => workers.ask(function, facts, answer)
        case Some(None)          => noWorker(PythonPolicy.TooMany)
        case None                => noWorker(PythonPolicy.NoSpark)
      }
    }

  private def noWorker(why: String) = Left(EvaluationFailure(why, Reason.PythonNoWorker))
}

object PythonPolicy {

  private val NoSpark = "No Spark runs here."

  private val TooMany =
    s"the functions of ${PythonWorkers.MostOwners} other sessions have worker processes, which were asked within " +
      "the last minute: as many sessions may have some at a time."

  /** The policy that a text names, loaded by a worker.
    *
    * @param caller
    *   who names it
    */
  def compile(
      text: String,
      point: DecisionPoint[_],
      caller: Caller
  ): Either[PolicyError, CompiledPolicy] =
    for {
      named <- PythonText.of(text)
      owner <- owner(named, caller)
      sc <- SparkContext.getActive.toRight(error(PolicyError.InternalError, NoSpark))
      workers <- PythonWorkers.of(sc, owner).toRight(unloaded(named, TooMany))
      function <- workers.load(named, point, caller.waits).left.map(unloaded(named, _))
    } yield new PythonPolicy(owner, function)

  private def unloaded(named: PythonText, why: String) =
    error(PolicyError.PythonLoadFailed, s"${named.text} cannot be loaded: $why")

  private def owner(named: PythonText, caller: Caller): Either[PolicyError, PythonOwner] =
    named match {
      case _ if caller.isSubmitted => Right(PythonOwner.Application)
      case _ if caller.token.exists(SessionFunctions.ofDriver.get(_, named.text).isDefined) =>
        Right(PythonOwner.Session(caller.token.get))
      case _: PickledFunction =>
        val message =
          s"${named.text} stands for a function that this session did not bring: pass the function itself to " +
            "aqepilot.use(spark, ...)."
        Left(error(PolicyError.PythonLoadFailed, message))
      case _ if isSessionAllowed => Right(PythonOwner.Named(named.text))
      case _: ImportedFunction   =>
        val message =
          s"${named.text}: a Python function runs as the driver's user, so a session's settings may not " +
            "name one. Submit it with the application, pass it to aqepilot.use(spark, ...) in the driver's " +
            s"own Python, or submit ${AqePilotConf.PythonAllowSession.key}=true."
        Left(error(PolicyError.PythonNotAllowed, message))
    }

  private def isSessionAllowed: Boolean =
    AqePilotConf.PythonAllowSession.inForce

  private def error(code: String, message: String) =
    PolicyError(code, message, Some(1), Some(1), Nil)
}

package org.apache.spark.sql.aqepilot.python

import java.io.ByteArrayOutputStream

import com.fasterxml.jackson.core.JsonFactory
import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.{AqePilotConf, FailOpen}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

import io.aqepilot.decision.{DecisionPoint, Reason}
import io.aqepilot.log.FactsJson
import io.aqepilot.policy.{CompiledPolicy, EvaluationFailure, PolicyError}

/** A facts row on its way to a worker. */
final class Facts(json: Array[Byte], longs: FactsJson.Longs) {

  /** @param id
    *   comes back with the answer
    * @param seconds
    *   after which the kernel ends the worker, should nobody else
    */
  def frame(id: Int, function: Int, seconds: Double): Frame = {
    val head = s"""{"id":$id,"function_id":$function,"seconds":$seconds,"facts":"""
    val out = new ByteArrayOutputStream(head.length + json.length + 1)
    out.write(head.getBytes)
    out.write(json)
    out.write('}')
    new Frame(out.toByteArray, longs.size, longs.writeTo)
  }
}

/** A policy that a Python function is, asked in a worker process.
  *
  * At `join_reorder` it gives the whole order.
  */
final class PythonPolicy(workers: PythonWorkers, function: PythonFunction) extends CompiledPolicy {

  private val point = function.point

  override val text: String = function.text.text

  override val answer: DataType = point.alternative.getOrElse(point.answer)

  override def code: Option[String] = function.revision

  override def eval(facts: InternalRow): Either[EvaluationFailure, Any] =
    CompiledPolicy.guarded(e => EvaluationFailure(FailOpen.short(e), Reason.InternalError)) {
      workers.ask(function, answer)(PythonPolicy.facts(facts, point))
    }
}

object PythonPolicy {

  private val factory = new JsonFactory

  private def facts(row: InternalRow, point: DecisionPoint): Facts = {
    val out = new ByteArrayOutputStream(4096)
    val longs = new FactsJson.Longs
    val json = factory.createGenerator(out)
    FactsJson.write(row, point.facts, json, longs)
    json.close()
    new Facts(out.toByteArray, longs)
  }

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

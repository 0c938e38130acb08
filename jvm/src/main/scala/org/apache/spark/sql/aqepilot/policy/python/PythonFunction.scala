package org.apache.spark.sql.aqepilot.policy.python

import java.util.concurrent.CompletableFuture
import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.sql.aqepilot.decision.DecisionPoint
import org.apache.spark.sql.aqepilot.policy.{Breaker, EvaluationFailure}
import org.apache.spark.sql.aqepilot.spark.Sessions

/** Whose worker processes load a function, and so share what it does to them. */
sealed trait PythonOwner

object PythonOwner {

  /** The submitted configuration. */
  case object Application extends PythonOwner

  /** A session whose own Python brought functions. */
  final case class Session(token: String) extends PythonOwner

  /** Any session that names the function, where `spark.aqepilot.python.allow_session` lets it. */
  final case class Named(text: String) extends PythonOwner
}

/** A function at a point, as its owner's workers know it. */
final class PythonFunction(
    val text: PythonText,
    val point: DecisionPoint[_],
    val breaker: Breaker
) {
  import PythonFunction._

  val id: Int = ids.incrementAndGet()

  private var loading: CompletableFuture[Unit] = _

  /** A hash of the function's code, as the worker that loaded it first found it. */
  @volatile private[python] var revision: Option[String] = None

  /** Why no worker could load it. */
  @volatile private[python] var refusal: Option[String] = None

  @volatile private var lastFailure: Option[Failed] = None
  private[python] val roundTrips = new RoundTrips

  /** Has it loaded, unless that is under way or was tried before.
    *
    * @param anew
    *   tries again what was refused
    * @param load
    *   begins, and completes what it is given when it is done
    * @return
    *   done when it was tried
    */
  private[python] def loadedBy(anew: Boolean)(
      load: CompletableFuture[Unit] => Unit
  ): CompletableFuture[Unit] = synchronized {
    if (loading == null || (anew && loading.isDone && revision.isEmpty)) {
      refusal = None
      loading = new CompletableFuture[Unit]
      load(loading)
    }
    loading
  }

  private[python] def failed(failure: EvaluationFailure): Unit = {
    val session = Sessions.active.map(_.sessionUUID)
    lastFailure = Some(Failed(session, failure.reason.code, failure.message))
  }

  /** How it failed last: with the message for the session whose facts it was asked about, or for everyone. */
  private[python] def lastFailed(everyone: Boolean = false): Option[String] = lastFailure.map { f =>
    if (everyone || f.session == Sessions.active.map(_.sessionUUID)) s"${f.code}: ${f.message}"
    else f.code
  }

  /** As JSON: how often it answered, how long the newest answers took to come, how it failed last. */
  private[python] def detail(everyone: Boolean): String = {
    val node = WorkerProcess.mapper.createObjectNode().put("answers", roundTrips.answers)
    roundTrips.percentile(50).foreach(node.put("median_ms", _))
    roundTrips.percentile(99).foreach(node.put("p99_ms", _))
    lastFailed(everyone).foreach(node.put("last_failure", _))
    node.toString
  }
}

private object PythonFunction {
  private val ids = new AtomicInteger

  final private case class Failed(session: Option[String], code: String, message: String)
}

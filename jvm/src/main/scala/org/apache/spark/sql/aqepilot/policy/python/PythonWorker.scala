package org.apache.spark.sql.aqepilot.policy.python

import java.io.IOException
import java.util.concurrent.{Executor, TimeUnit, TimeoutException}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.aqepilot.policy.EvaluationFailure
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.InternalRow

/** What a worker needs to know.
  *
  * @param isKnown
  *   whether a function may still be asked, by its id
  * @param elsewhere
  *   writes what may have to wait for its reader
  */
final private[python] class WorkerSettings(
    val deadline: Long,
    val loadTimeout: Long,
    val memory: Long,
    val python: OwnersPython,
    val isKnown: Int => Boolean,
    val elsewhere: Executor
)

/** One process at a time, and what it has loaded. Used by the one thread that took it, but for [[close]]. */
final private[python] class PythonWorker(val name: String, settings: WorkerSettings) {
  import PythonWorker._

  @volatile private var process: Option[WorkerProcess] = None
  @volatile private var lastFailure: Option[String] = None
  @volatile private var isClosed = false

  private var loaded = Set.empty[Int]
  private var starts = 0
  private var failedStarts = 0
  private var notBefore = 0L

  def state: String = if (process.exists(_.isAlive)) "running" else "not running"

  def detail: String = process.filter(_.isAlive) match {
    case Some(p) => s"process ${p.pid}, Python ${p.python}, start $starts of this worker"
    case None    => lastFailure.orNull
  }

  /** Whether its process can be asked that function now. */
  def has(function: PythonFunction): Boolean =
    process.exists(_.isAlive) && loaded.contains(function.id)

  /** Why it has no process, nor may start one now. */
  def hindrance: Option[String] =
    if (process.exists(_.isAlive)) None
    else if (isClosed) Some(Closed)
    else if (notBefore > System.nanoTime()) lastFailure
    else None

  /** Whether it has lost its process, and may start one now. */
  def isLost: Boolean =
    !process.exists(_.isAlive) && !isClosed && notBefore <= System.nanoTime()

  def close(): Unit = {
    isClosed = true
    process.foreach(_.kill())
  }

  /** Starts a process if there is none, and has it load what it has not. As long as that takes. */
  def prepare(functions: Seq[PythonFunction]): Unit =
    talk {
      val p = running()
      functions.filterNot(f => loaded.contains(f.id)).foreach(load(p, _))
    }

  /** Of a function that it [[has]]: never of a new process, which would not have it. */
  def ask(function: PythonFunction, facts: InternalRow): Outcome =
    process.fold[Outcome](Outcome.Unsent)(ask(_, function, facts))

  private def ask(p: WorkerProcess, function: PythonFunction, facts: InternalRow): Outcome = {
    p.wake(System.nanoTime() + settings.deadline)
    val request = Request.ask(function, facts, settings.deadline)
    val outcome = talk {
      try {
        val start = System.nanoTime()
        val reply = converse(p, request, settings.deadline)
        answer(reply, System.nanoTime() - start)
      } catch {
        case _: TimeoutException =>
          val why = s"no answer within ${millis(settings.deadline)} ms"
          Outcome.Failed(failure(Reason.PythonDeadline, why))
        case _: Unsent =>
          p.end()
          Outcome.Unsent
      }
    }
    outcome.merge
  }

  /** A process that was left in the middle of a conversation is ended: its next answer would be the last one's. */
  private def talk[T](body: => T): Either[Outcome.Failed, T] = {
    def failed(reason: Reason, why: String) = Left(Outcome.Failed(failure(reason, why)))
    try Right(body)
    catch {
      case e: StartFailed => failed(Reason.PythonNoWorker, e.getMessage)
      case _: IOException =>
        val died = process.fold("") { p => p.end(); p.ending }
        failed(Reason.PythonDied, s"the worker process is gone: $died")
      case e: Throwable =>
        process.foreach(_.kill())
        e match {
          case NonFatal(_) => failed(Reason.PythonDied, FailOpen.short(e))
          case _           => throw e
        }
    }
  }

  private def converse(p: WorkerProcess, request: Request, most: Long): JsonNode = {
    val end = System.nanoTime() + most
    try p.send(request, settings.elsewhere, end)
    catch { case e: IOException => throw new Unsent(e) }
    val reply =
      try p.read(end)
      catch {
        case e: TimeoutException =>
          p.kill()
          throw e
      }
    if (reply.path("id").asInt != request.id)
      throw new IOException("it answered another question")
    reply
  }

  private def answer(reply: JsonNode, took: Long): Outcome =
    if (reply.has("answer")) Outcome.Answer(reply.get("answer").asText, took)
    else if (reply.has("wrong"))
      Outcome.Failed(failure(Reason.PythonWrongAnswer, reply.get("wrong").asText))
    else {
      val trace = reply.path("trace").asText
      val why = reply.path("error").asText + inTrace(trace)
      Outcome.Failed(failure(Reason.PythonRaised, why), trace)
    }

  private def load(p: WorkerProcess, function: PythonFunction): Unit = {
    val forgotten = loaded.filterNot(settings.isKnown)
    val request = Request.load(
      function,
      settings.python.brought(function),
      settings.python.path(function),
      forgotten.toSeq,
      settings.loadTimeout
    )
    val refusal =
      try {
        val reply = converse(p, request, settings.loadTimeout)
        val revision = reply.path("revision").asText("")
        if (!reply.has("revision"))
          Some(reply.path("error").asText("?") + inTrace(reply.path("trace").asText))
        else if (function.revision.exists(_ != revision))
          Some("its files changed while the application ran: restart the application")
        else {
          function.revision = Some(revision)
          None
        }
      } catch {
        case _: TimeoutException =>
          Some(
            s"it was not loaded within ${millis(settings.loadTimeout)} ms " +
              s"(${AqePilotConf.PythonLoadTimeout.key})"
          )
        case e: IOException =>
          p.end()
          function.refusal = Some(s"the worker process ended while it was loaded: ${p.ending}")
          throw e
      }
    function.refusal = refusal
    if (refusal.isEmpty) loaded = loaded -- forgotten + function.id
  }

  private def running(): WorkerProcess = process.filter(_.isAlive).getOrElse {
    process.foreach(_.end())
    process = None
    loaded = Set.empty
    if (isClosed) throw new StartFailed(Closed)
    if (System.nanoTime() < notBefore) throw new StartFailed(lastFailure.getOrElse("?"))
    val interpreter = settings.python.interpreter
    try {
      val p = WorkerProcess.start(name, interpreter, settings)
      process = Some(p)
      if (isClosed) throw new IOException(Closed)
      p.greet(System.nanoTime() + settings.loadTimeout)
      starts += 1
      failedStarts = 0
      p
    } catch {
      case NonFatal(e) =>
        process.foreach(_.end())
        process = None
        failedStarts = math.min(failedStarts + 1, 10)
        val pause = math.min(MostPauseNanos, FirstPauseNanos << (failedStarts - 1))
        notBefore = System.nanoTime() + pause
        lastFailure = Some(s"$interpreter: ${FailOpen.short(e)}")
        FailOpen.warnOnce(s"no Python worker: ${lastFailure.get}")
        throw new StartFailed(lastFailure.get)
    }
  }
}

private[python] object PythonWorker {

  /** What asking came to. */
  sealed trait Outcome

  object Outcome {
    final case class Answer(json: String, took: Long) extends Outcome

    /** The process was gone before it had the whole question: another may be asked. */
    case object Unsent extends Outcome
    final case class Failed(failure: EvaluationFailure, trace: String = "") extends Outcome
  }

  final private class Unsent(cause: IOException) extends IOException(cause)

  final private class StartFailed(message: String) extends RuntimeException(message)

  private val Closed = "the application, or the session, has ended"
  private val FirstPauseNanos = TimeUnit.SECONDS.toNanos(1)
  private val MostPauseNanos = TimeUnit.MINUTES.toNanos(5)

  def failure(reason: Reason, message: String): EvaluationFailure =
    EvaluationFailure(message.take(300), reason)

  def millis(nanos: Long): Long = TimeUnit.NANOSECONDS.toMillis(nanos)

  private def inTrace(trace: String): String = {
    val lines = trace.linesIterator.filter(_.trim.startsWith("File ")).toSeq
    lines.lastOption.fold("")(line => s" (${line.trim})")
  }
}

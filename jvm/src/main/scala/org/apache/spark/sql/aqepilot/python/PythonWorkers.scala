package org.apache.spark.sql.aqepilot.python

import java.io.{File, IOException}
import java.util.concurrent.{
  ConcurrentHashMap,
  Executors,
  LinkedBlockingQueue,
  TimeUnit,
  TimeoutException
}
import java.util.concurrent.atomic.AtomicInteger

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.SparkContext
import org.apache.spark.api.python.PythonUtils
import org.apache.spark.internal.Logging
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}
import org.apache.spark.sql.aqepilot.{AqePilotConf, FailOpen, Setting}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

import io.aqepilot.decision.{DecisionPoint, Reason}
import io.aqepilot.policy.{Breaker, EvaluationFailure}

/** A function at a point, as the workers know it. */
final class PythonFunction(
    val id: Int,
    val text: PythonText,
    val point: DecisionPoint,
    val session: Option[SessionFunction],
    val breaker: Breaker
) {

  /** A hash of the function's code, as the worker that loaded it first found it. */
  @volatile private[python] var revision: Option[String] = None
  @volatile private[python] var lastFailure: Option[String] = None
  private[python] val roundTrips = new RoundTrips

  /** As JSON: how often it answered, how long the newest answers took to come, how it failed last. */
  private[python] def detail: String = {
    val node = WorkerProcess.mapper.createObjectNode().put("answers", roundTrips.answers)
    roundTrips.percentile(50).foreach(node.put("median_ms", _))
    roundTrips.percentile(99).foreach(node.put("p99_ms", _))
    lastFailure.foreach(node.put("last_failure", _))
    node.toString
  }
}

/** The worker processes of one driver: as many as `spark.aqepilot.python.workers`. Who asks takes one for the ask and
  * speaks to it in its own thread (each change of thread may wait for a core), for the deadline and no longer; a
  * process that has not answered by then is ended, and the next is started at once, by a thread of ours.
  *
  * No call throws but InterruptedException.
  */
final class PythonWorkers private (sc: SparkContext) extends Logging {
  import PythonWorkers._

  private val deadline = nanos(AqePilotConf.AskDeadline)
  private val loadTimeout = nanos(AqePilotConf.PythonLoadTimeout)
  private val breakerNanos = nanos(AqePilotConf.BreakerTime)
  private val breakerFailures = AqePilotConf.inForce(AqePilotConf.BreakerFailures).toInt
  private val memory = AqePilotConf.toBytes(AqePilotConf.inForce(AqePilotConf.PythonMemory))

  private val ids = new AtomicInteger
  private val functions = new ConcurrentHashMap[(String, String), PythonFunction]()
  @volatile private var isClosed = false

  private val workers =
    Seq.tabulate(AqePilotConf.inForce(AqePilotConf.PythonWorkers).toInt)(new Worker(_))
  private val free = new LinkedBlockingQueue[Worker]()
  workers.foreach(free.put)

  /** Starts processes anew, and writes what may have to wait for its reader. */
  private val background = Executors.newCachedThreadPool { (task: Runnable) =>
    val thread = new Thread(task, "aqepilot-python")
    thread.setDaemon(true)
    thread
  }

  sc.addSparkListener(new SparkListener {
    override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = close()
  })

  /** The function of a text at a point, loaded by one worker unless it is already. Where there is no worker for now,
    * it is loaded when it is asked.
    *
    * @return
    *   why not, if the function is at fault
    */
  def load(text: PythonText, point: DecisionPoint): Either[String, PythonFunction] = {
    val key = (text.text, point.name)
    val function = functions.computeIfAbsent(
      key,
      _ =>
        new PythonFunction(
          ids.incrementAndGet(),
          text,
          point,
          SessionFunctions.get(text.text),
          new Breaker(breakerFailures, breakerNanos)
        )
    )
    if (function.revision.isDefined) Right(function)
    else
      served(2 * loadTimeout)(_.load(function)) match {
        case Outcome.NotLoaded(message) =>
          functions.remove(key, function)
          Left(message)
        case _ => Right(function)
      }
  }

  /** The function's decision on a facts row, a Catalyst value of the type `answer`. */
  def ask(
      function: PythonFunction,
      facts: InternalRow,
      answer: DataType
  ): Either[EvaluationFailure, Any] =
    if (!function.breaker.admits()) Left(failure(Reason.PythonBreakerOpen, opened(function)))
    else {
      var isTold = false
      try {
        val decided = served(deadline)(_.ask(function, facts)) match {
          case Outcome.Answer(json, took) =>
            function.roundTrips.add(took)
            try {
              val value = PythonAnswer.of(json, answer)
              function.breaker.succeeded()
              Right(value)
            } catch {
              case e: PythonAnswer.WrongAnswer =>
                Left(failed(function, failure(Reason.PythonWrongAnswer, e.getMessage)))
            }
          case Outcome.Failed(busy, _) if busy.reason == Reason.PythonBusy =>
            function.breaker.unasked()
            Left(busy)
          case Outcome.Failed(failure, trace) => Left(failed(function, failure, trace))
          case Outcome.NotLoaded(message)     =>
            Left(failed(function, failure(Reason.PythonNoWorker, message)))
          case Outcome.Loaded =>
            Left(failed(function, failure(Reason.InternalError, "loaded instead of asked")))
        }
        isTold = true
        decided
      } finally if (!isTold) function.breaker.unasked()
    }

  /** It failed: counted, and told once for each way of failing. */
  private def failed(
      function: PythonFunction,
      failure: EvaluationFailure,
      trace: String = ""
  ): EvaluationFailure = {
    function.lastFailure = Some(s"${failure.reason.code}: ${failure.message}")
    val what = s"${function.text.text} at ${function.point.name}"
    FailOpen.warnOnce(
      s"$what: ${failure.reason.code}: ${failure.message}" +
        (if (trace.isEmpty) "" else "\n" + trace.stripSuffix("\n"))
    )
    if (function.breaker.failed()) logWarning(s"aqepilot: $what: ${opened(function)}")
    failure
  }

  private def opened(function: PythonFunction): String = {
    val seconds = function.breaker.openFor.fold(0L)(n => math.max(1, n / 1000000000L))
    s"it is asked again in $seconds s; it failed with " + function.lastFailure.getOrElse("?")
  }

  private def loadedFunctions: Seq[PythonFunction] =
    functions.values.toArray(Array.empty[PythonFunction]).toSeq.sortBy(_.id)

  /** Name, state and detail of each worker and function. */
  def status: Seq[(String, String, String)] =
    workers.map(w => (w.name.stripPrefix("aqepilot-"), w.state, w.detail)) ++
      loadedFunctions.map { f =>
        val state = if (f.breaker.openFor.isDefined) "breaker open" else "ready"
        (s"${f.text.text} at ${f.point.name}", state, f.detail)
      }

  /** Ends all processes; who waits for an answer gets none. */
  def close(): Unit = {
    isClosed = true
    workers.foreach(_.close())
  }

  /** What a worker that is free within a time, or is being made ready, does. */
  private def served(most: Long)(serve: Worker => Outcome): Outcome = {
    var found = free.poll(most, TimeUnit.NANOSECONDS)
    while (found == null && workers.exists(_.isStarting))
      found = free.poll(PollNanos, TimeUnit.NANOSECONDS)
    if (found == null)
      Outcome.Failed(
        failure(Reason.PythonBusy, s"its turn did not come within ${millis(most)} ms")
      )
    else
      try serve(found)
      finally
        if (found.isLost) {
          found.isStarting = true
          background.execute { () =>
            try found.again()
            finally {
              free.put(found)
              found.isStarting = false
            }
          }
        } else free.put(found)
  }

  /** One process at a time, and what it has loaded. Used by the one thread that took it. */
  final private class Worker(number: Int) {
    val name: String = s"aqepilot-python-$number"

    @volatile private var process: Option[WorkerProcess] = None
    @volatile private var lastFailure: Option[String] = None

    /** Whether a new process is made ready: who asks waits for that. */
    @volatile var isStarting = false
    private var loaded = Set.empty[Int]
    private var starts = 0
    private var failedStarts = 0
    private var notBefore = 0L

    def state: String = if (process.exists(_.isAlive)) "running" else "not running"

    def detail: String = process.filter(_.isAlive) match {
      case Some(p) => s"process ${p.pid}, Python ${p.python}, start $starts of this worker"
      case None    => lastFailure.orNull
    }

    /** Whether it needs a new process, and may start one now. */
    def isLost: Boolean =
      !process.exists(_.isAlive) && !isClosed && notBefore <= System.nanoTime()

    def close(): Unit = process.foreach(_.kill())

    def load(function: PythonFunction): Outcome =
      talk()(loadedBy(_, function).getOrElse(Outcome.Loaded))

    def ask(function: PythonFunction, facts: InternalRow): Outcome = {
      process.foreach(_.wake())
      val request = Request.ask(function, facts, deadline)
      talk()(asked(_, function, request))
    }

    private def asked(p: WorkerProcess, function: PythonFunction, request: Request): Outcome =
      loadedBy(p, function).getOrElse {
        try {
          val start = System.nanoTime()
          val said = converse(p, request, deadline)
          answer(said, System.nanoTime() - start)
        } catch {
          case _: TimeoutException =>
            val why = s"no answer within ${millis(deadline)} ms"
            Outcome.Failed(failure(Reason.PythonDeadline, why))
        }
      }

    /** A new process, with the functions that are asked, before the next one is. */
    def again(): Unit = talk() { p =>
      loadedFunctions
        .filter(f => f.revision.isDefined && f.breaker.openFor.isEmpty)
        .foreach(loadedBy(p, _))
      Outcome.Loaded
    }

    /** A process that was left in the middle of a conversation is ended: its next answer would be the last one's. */
    private def talk(isAgain: Boolean = false)(body: WorkerProcess => Outcome): Outcome =
      try body(running())
      catch {
        case e: StartFailed        => Outcome.Failed(failure(Reason.PythonNoWorker, e.getMessage))
        case _: Unsent if !isAgain => talk(isAgain = true)(body)
        case _: IOException        =>
          val died = process.fold("") { p => p.end(); p.ending }
          Outcome.Failed(failure(Reason.PythonDied, s"the worker process is gone: $died"))
        case e: Throwable =>
          process.foreach(_.kill())
          e match {
            case NonFatal(_) => Outcome.Failed(failure(Reason.PythonDied, FailOpen.short(e)))
            case _           => throw e
          }
      }

    private def converse(p: WorkerProcess, request: Request, most: Long): JsonNode = {
      val end = System.nanoTime() + most
      try p.send(request, background)
      catch {
        case e: IOException =>
          p.end()
          throw new Unsent(e)
      }
      val said =
        try p.read(end)
        catch {
          case e: TimeoutException =>
            p.kill()
            throw e
        }
      if (said.path("id").asInt != request.id)
        throw new IOException("it answered another question")
      said
    }

    private def answer(said: JsonNode, took: Long): Outcome =
      if (said.has("answer")) Outcome.Answer(said.get("answer").asText, took)
      else if (said.has("wrong"))
        Outcome.Failed(failure(Reason.PythonWrongAnswer, said.get("wrong").asText))
      else {
        val trace = said.path("trace").asText
        val why = said.path("error").asText + inTrace(trace)
        Outcome.Failed(failure(Reason.PythonRaised, why), trace)
      }

    /** None when it has the function now. */
    private def loadedBy(p: WorkerProcess, function: PythonFunction): Option[Outcome] =
      if (loaded.contains(function.id)) None
      else
        try {
          val request = Request.load(function, path(function), loadTimeout)
          val said = converse(p, request, loadTimeout)
          val revision = said.path("revision").asText("")
          if (!said.has("revision")) {
            val trace = said.path("trace").asText
            Some(Outcome.NotLoaded(said.path("error").asText("?") + inTrace(trace)))
          } else if (function.revision.exists(_ != revision))
            Some(
              Outcome.NotLoaded(
                "its files changed while the application ran: restart the application"
              )
            )
          else {
            function.revision = Some(revision)
            loaded += function.id
            None
          }
        } catch {
          case _: TimeoutException =>
            Some(
              Outcome.NotLoaded(
                s"it was not loaded within ${millis(loadTimeout)} ms " +
                  s"(${AqePilotConf.PythonLoadTimeout.key})"
              )
            )
        }

    private def running(): WorkerProcess = process.filter(_.isAlive).getOrElse {
      process.foreach(_.end())
      process = None
      loaded = Set.empty
      if (isClosed) throw new StartFailed("the application has ended")
      if (System.nanoTime() < notBefore) throw new StartFailed(lastFailure.getOrElse("?"))
      try {
        val p = WorkerProcess.start(name, interpreter, memory)
        process = Some(p)
        if (isClosed) throw new IOException("the application has ended")
        p.greet(System.nanoTime() + loadTimeout)
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

  private def path(function: PythonFunction): Seq[String] =
    (function.session.fold(Seq.empty[String])(_.path) ++ ownPath).distinct

  /** `--py-files` (of a module the folder, as in `PythonRunner.resolvePyFiles`), pyspark itself, and the working
    * directory last.
    */
  private def ownPath: Seq[String] =
    sc.conf.get("spark.submit.pyFiles", "").split(",").toSeq.filter(_.nonEmpty).map { entry =>
      val file = if (entry.startsWith("file:")) new java.net.URI(entry).getPath else entry
      if (file.endsWith(".py")) new File(file).getAbsoluteFile.getParent else file
    } ++ PythonUtils.sparkPythonPath.split(File.pathSeparator).toSeq.filter(_.nonEmpty) :+
      new File(".").getAbsoluteFile.getParent

  /** As `PythonRunner` finds the driver's; a notebook's front end is no interpreter. */
  private def interpreter: String =
    sc.conf
      .getOption("spark.pyspark.driver.python")
      .orElse(sc.conf.getOption("spark.pyspark.python"))
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON").filterNot(isFrontEnd))
      .orElse(sys.env.get("PYSPARK_PYTHON"))
      .orElse(loadedFunctions.flatMap(_.session).map(_.python).find(_.nonEmpty))
      .getOrElse("python3")
}

object PythonWorkers {

  /** What asking or loading came to. */
  sealed private trait Outcome

  private object Outcome {
    final case class Answer(json: String, took: Long) extends Outcome
    case object Loaded extends Outcome
    final case class NotLoaded(message: String) extends Outcome
    final case class Failed(failure: EvaluationFailure, trace: String = "") extends Outcome
  }

  /** The process was gone before it had the whole question: another may be asked. */
  final private class Unsent(cause: IOException) extends IOException(cause)

  final private class StartFailed(message: String) extends RuntimeException(message)

  private val PollNanos = TimeUnit.MILLISECONDS.toNanos(5)
  private val FirstPauseNanos = TimeUnit.SECONDS.toNanos(1)
  private val MostPauseNanos = TimeUnit.MINUTES.toNanos(5)

  private var current: Option[(SparkContext, PythonWorkers)] = None

  /** Those of a driver, made on first use. */
  def get(sc: SparkContext): PythonWorkers = synchronized {
    current match {
      case Some((`sc`, workers)) => workers
      case other                 =>
        other.foreach(_._2.close())
        val made = new PythonWorkers(sc)
        current = Some((sc, made))
        made
    }
  }

  /** Those of the running driver, if it has any. */
  def getActive: Option[PythonWorkers] = synchronized {
    current.collect { case (sc, workers) if SparkContext.getActive.contains(sc) => workers }
  }

  private def failure(reason: Reason, message: String) =
    EvaluationFailure(message.take(300), reason)

  private def nanos(setting: Setting): Long =
    TimeUnit.MILLISECONDS.toNanos(AqePilotConf.toMillis(AqePilotConf.inForce(setting)))

  private def millis(nanos: Long): Long = TimeUnit.NANOSECONDS.toMillis(nanos)

  private def isFrontEnd(python: String): Boolean = {
    val name = new File(python.trim.split("\\s+").head).getName
    name.startsWith("jupyter") || name.startsWith("ipython")
  }

  private def inTrace(trace: String): String = {
    val lines = trace.linesIterator.filter(_.trim.startsWith("File ")).toSeq
    lines.lastOption.fold("")(line => s" (${line.trim})")
  }
}

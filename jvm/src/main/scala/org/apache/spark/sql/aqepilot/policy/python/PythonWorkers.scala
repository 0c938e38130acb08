package org.apache.spark.sql.aqepilot.policy.python

import java.util.concurrent.atomic.{AtomicInteger, AtomicLong}
import java.util.concurrent.{Executors, LinkedBlockingQueue, TimeUnit, TimeoutException}

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.internal.Logging
import org.apache.spark.sql.aqepilot.decision.DecisionPoint
import org.apache.spark.sql.aqepilot.policy.{Breaker, EvaluationFailure}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Setting}
import org.apache.spark.sql.aqepilot.spark.{Application, FailOpen, Recent, Sessions}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

/** The worker processes of one owner: as many as `spark.aqepilot.python.workers`. A thread that asks takes one for the ask and
  * writes to it itself (each change of thread may wait for a core): its turn and then the answer have the
  * deadline each, and no ask waits longer. Threads of ours start processes and load functions; a process that has not
  * answered by the deadline is ended, and the next is started at once.
  *
  * No call throws but InterruptedException.
  */
final class PythonWorkers private (
    sc: SparkContext,
    val owner: PythonOwner,
    numbers: AtomicInteger
) extends Logging {
  import PythonWorker.{Outcome, failure, millis}
  import PythonWorkers._

  private val deadline = nanos(AqePilotConf.AskDeadline)
  private val loadTimeout = nanos(AqePilotConf.PythonLoadTimeout)
  private val breakerNanos = nanos(AqePilotConf.BreakerTime)
  private val breakerFailures = AqePilotConf.BreakerFailures.inForce

  private val functions =
    Recent.map[(String, String), PythonFunction](SessionFunctions.MostFunctions)
  @volatile private var lastUse = System.nanoTime()

  private[python] val workers = {
    val settings = new WorkerSettings(
      deadline,
      loadTimeout,
      AqePilotConf.PythonMemory.inForce,
      new OwnersPython(sc, owner),
      id => known.exists(_.id == id),
      background
    )
    Seq.fill(AqePilotConf.PythonWorkers.inForce)(
      new PythonWorker(s"aqepilot-python-${numbers.getAndIncrement()}", settings)
    )
  }
  private val free = new LinkedBlockingQueue[PythonWorker]()
  workers.foreach(free.put)

  private def known: Seq[PythonFunction] = functions.synchronized {
    functions.values.toArray(Array.empty[PythonFunction]).toSeq.sortBy(_.id)
  }

  /** The function of a text at a point. What one worker has loaded, the others load when they are asked.
    *
    * @param waits
    *   for the function to be loaded, as long as that may take, also if it was refused before; else no longer than an
    *   ask may take
    * @return
    *   why not, if the function is at fault
    */
  def load(
      text: PythonText,
      point: DecisionPoint[_],
      waits: Boolean
  ): Either[String, PythonFunction] = {
    val function = functions.computeIfAbsent(
      (text.text, point.name),
      _ => new PythonFunction(text, point, new Breaker(breakerFailures, breakerNanos))
    )
    lastUse = System.nanoTime()
    val loading = function.loadedBy(anew = waits) { loading =>
      background.execute { () =>
        try
          Option(free.poll(2 * loadTimeout, TimeUnit.NANOSECONDS)).foreach(prepare(_, function))
        finally {
          changes.incrementAndGet()
          loading.complete(())
        }
      }
    }
    try loading.get(if (waits) 4 * loadTimeout else deadline, TimeUnit.NANOSECONDS)
    catch { case _: TimeoutException => } // It is loaded meanwhile, and PYTHON_BUSY until then.
    function.refusal.toLeft(function)
  }

  /** The function's decision on a facts row, a Catalyst value of the type `answer`. */
  def ask(
      function: PythonFunction,
      facts: InternalRow,
      answer: DataType
  ): Either[EvaluationFailure, Any] =
    function.breaker.ask(opened(function)) {
      lastUse = System.nanoTime()
      // The owner's workers may have been made anew since it was loaded.
      functions.putIfAbsent((function.text.text, function.point.name), function)
      answered(function, answer, served(function)(_.ask(function, facts)))
    }.getOrElse(Left(failure(Reason.PythonBreakerOpen, untilAsked(function))))

  private def answered(
      function: PythonFunction,
      answer: DataType,
      outcome: Outcome
  ): (Either[EvaluationFailure, Any], Breaker.Went) = {
    def failed(failure: EvaluationFailure, trace: String = "") = {
      noteFailure(function, failure, trace)
      (Left(failure), Breaker.Failed)
    }
    outcome match {
      case Outcome.Answer(json, took) =>
        function.roundTrips.add(took)
        try Right(PythonAnswer.of(json, answer)) -> Breaker.Succeeded
        catch {
          case e: PythonAnswer.WrongAnswer =>
            failed(failure(Reason.PythonWrongAnswer, e.getMessage))
        }
      case Outcome.Failed(busy, _) if busy.reason == Reason.PythonBusy =>
        (Left(busy), Breaker.Unasked)
      case Outcome.Failed(failure, trace) => failed(failure, trace)
      case Outcome.Unsent => failed(failure(Reason.PythonDied, "the worker process is gone"))
    }
  }

  /** A line in the log for each way of failing. */
  private def noteFailure(
      function: PythonFunction,
      failure: EvaluationFailure,
      trace: String
  ): Unit = {
    function.failed(failure)
    FailOpen.warnOnce(
      s"${named(function)}: ${failure.reason.code}: ${failure.message}" +
        (if (trace.isEmpty) "" else "\n" + trace.stripSuffix("\n"))
    )
  }

  /** It is left alone for a while. What could not be loaded any more is loaded again when it is tried next. */
  private def opened(function: PythonFunction): Unit = {
    function.refusal = None
    logWarning(s"aqepilot: ${named(function)}: ${untilAsked(function)}")
  }

  private def named(function: PythonFunction): String =
    s"${function.text.text} at ${function.point.name}"

  private def untilAsked(function: PythonFunction): String = {
    val seconds = function.breaker.openFor.fold(0L)(n => math.max(1, n / 1000000000L))
    s"it is asked again in $seconds s; it failed with " + function.lastFailed().getOrElse("?")
  }

  /** Name, state and detail of each worker and function.
    *
    * @param everyone
    *   whether messages of functions about other sessions' facts are shown
    */
  def status(everyone: Boolean): Seq[(String, String, String)] =
    workers.map(w => (w.name.stripPrefix("aqepilot-"), w.state, w.detail)) ++
      known.map { f =>
        val state = if (f.breaker.openFor.isDefined) "breaker open" else "ready"
        (named(f), state, f.detail(everyone))
      }

  /** Ends all processes; who waits for an answer gets none. */
  private def close(): Unit = workers.foreach(_.close())

  private def isIdle: Boolean = System.nanoTime() - lastUse > IdleNanos

  /** What a worker that has the function does, if there is one by the deadline. Those that have lost it are made
    * ready meanwhile, for the next ask.
    */
  private def served(function: PythonFunction)(serve: PythonWorker => Outcome): Outcome = {
    val end = System.nanoTime() + deadline

    def next(aside: mutable.Buffer[PythonWorker]): Outcome =
      if (function.refusal.isDefined) noWorker(function.refusal.get)
      else if (aside.size == workers.size)
        noWorker(aside.flatMap(_.hindrance).headOption.getOrElse("?"))
      else
        free.poll(math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS) match {
          case null =>
            Outcome.Failed(
              failure(Reason.PythonBusy, s"its turn did not come within ${millis(deadline)} ms")
            )
          case worker if worker.has(function) =>
            val outcome =
              try serve(worker)
              finally if (worker.isLost) later(worker, function) else free.put(worker)
            if (outcome == Outcome.Unsent) next(aside) else outcome
          case worker if worker.hindrance.isDefined =>
            aside += worker
            next(aside)
          case worker =>
            later(worker, function)
            next(aside)
        }

    val aside = mutable.Buffer.empty[PythonWorker]
    try next(aside)
    finally aside.foreach(free.put)
  }

  private def noWorker(why: String): Outcome =
    Outcome.Failed(failure(Reason.PythonNoWorker, why))

  private def later(worker: PythonWorker, function: PythonFunction): Unit =
    background.execute(() => prepare(worker, function))

  /** Gives it a process and all functions that may be asked, the one that is waited for first; then it is free. One
    * whose import ends the process is refused, and the others are loaded into the next.
    */
  private def prepare(worker: PythonWorker, first: PythonFunction): Unit =
    try {
      def others = known.filter(f => f != first && f.breaker.openFor.isEmpty)
      def wanted = (first +: others).filter(_.refusal.isEmpty)
      var most = known.size + 1
      while (most > 0) {
        worker.prepare(wanted)
        most = if (worker.isLost) most - 1 else 0
      }
    } finally free.put(worker)
}

object PythonWorkers {

  /** Owners other than the application that have processes at a time. */
  private[python] val MostOwners = 32
  private val IdleNanos = TimeUnit.MINUTES.toNanos(1)

  private val changes = new AtomicLong

  private val background = Executors.newCachedThreadPool { (task: Runnable) =>
    val thread = new Thread("aqepilot-python") {
      override def run(): Unit = {
        Sessions.forget()
        task.run()
      }
    }
    thread.setDaemon(true)
    thread
  }

  /** Grows whenever a function was loaded, or refused. */
  def version: Long = changes.get

  private val owners = new Application.Value(new Owners(_))

  /** Those of an owner, made on first use: where too many owners have some, in place of those that were not asked for
    * the longest time, if that is a minute.
    *
    * @return
    *   None where too many others have some
    */
  def of(sc: SparkContext, owner: PythonOwner): Option[PythonWorkers] = owners.of(sc).of(owner)

  /** Those of some owners that have any in the running application.
    *
    * @param isShown
    *   which owners'
    */
  def active(isShown: PythonOwner => Boolean): Seq[PythonWorkers] =
    owners.ofActive.fold(Seq.empty[PythonWorkers])(_.all.filter(w => isShown(w.owner)))

  /** Ends an owner's processes. */
  private[python] def end(owner: PythonOwner): Unit = owners.ofActive.foreach(_.end(owner))

  /** The owners of one application. */
  final private class Owners(sc: SparkContext) extends AutoCloseable {

    private val known = mutable.LinkedHashMap.empty[PythonOwner, PythonWorkers]
    private val numbers = new AtomicInteger

    def all: Seq[PythonWorkers] = synchronized(known.values.toSeq)

    def of(owner: PythonOwner): Option[PythonWorkers] = synchronized {
      known.get(owner).orElse {
        val others = known.values.filter(_.owner != PythonOwner.Application)
        val isFull = owner != PythonOwner.Application && others.size >= MostOwners
        val idle = if (isFull) others.filter(_.isIdle).toSeq.sortBy(_.lastUse).headOption else None
        idle.foreach(workers => end(workers.owner))
        if (isFull && idle.isEmpty) None
        else {
          val made = new PythonWorkers(sc, owner, numbers)
          known.put(owner, made)
          Some(made)
        }
      }
    }

    def end(owner: PythonOwner): Unit = synchronized(known.remove(owner)).foreach(_.close())

    override def close(): Unit = synchronized {
      known.values.foreach(_.close())
      known.clear()
    }
  }

  private def nanos(setting: Setting[Long]): Long =
    TimeUnit.MILLISECONDS.toNanos(setting.inForce)
}

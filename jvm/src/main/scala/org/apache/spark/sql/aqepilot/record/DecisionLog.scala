package org.apache.spark.sql.aqepilot.record

import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong
import java.util.{Collections, LinkedHashMap, Map}

import com.codahale.metrics.Counter
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.aqepilot.decision.{Decided, FateReader}
import org.apache.spark.sql.aqepilot.facts.Runs
import org.apache.spark.sql.aqepilot.history.History
import org.apache.spark.sql.aqepilot.record.QueryRecorder.Barrier
import org.apache.spark.sql.aqepilot.run.{Control, Experiments, Owners}
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, LoggedFacts}
import org.apache.spark.sql.aqepilot.spark.{Application, FailOpen, Record, WithoutSession}
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.log.{
  AqePilotControl,
  AqePilotDecision,
  AqePilotExperiment,
  AqePilotFate,
  AqePilotPolicyLoaded,
  AqePilotQueryClosed
}

/** The record of one driver: what policies were loaded, what they decided, and what came of it. All
  * goes to Spark's listener bus, and so into its event log; the newest decisions stay here, for
  * `aqepilot_decisions()`. No call throws or waits, [[decisions]] excepted, which waits a little.
  *
  * What is lost is counted: `dropped.ring` (decisions that had to make room in the live view, the
  * event log has them), `dropped.queue` and `dropped.event_log` (events that Spark's full queues
  * dropped: figures and fates of queries, and lines of the event log), `dropped.queries` (queries
  * whose end was not waited for, too many being open).
  */
final class DecisionLog private (sc: SparkContext) extends Record {
  import DecisionLog._

  private val source = new DecisionSource
  private val failOpen = new FailOpen(source.failed)
  private val ids = new AtomicLong
  private val ring = new DecisionRing(
    failOpen("ring_bytes", DefaultRingBytes)(
      sc.conf.getSizeAsBytes(RingBytesKey, s"${DefaultRingBytes}b")
    )
  )
  private val waiting = new Later("aqepilot-record")
  // What is no session's own is redacted as the application was submitted, alike in all events that name it.
  private lazy val ofApplication = Redaction.ofTexts(sc.conf)
  private val recorder =
    new QueryRecorder(
      closed => {
        failOpen("history", ())(History.of(sc).foreach(_.learn(closed)))
        postLast(Redaction.closed(withLogged(closed), ofApplication))
      },
      settle,
      ring.claim,
      waiting,
      droppedEvents,
      (conf, id) => Some(Runs.of(conf.getOrElse(new SQLConf), sc, Some(id))),
      () => Control.of(sc),
      (conf, id, session, query) => Experiments.ended(sc, conf, id, session, query()),
      AqePilotConf.learns,
      failOpen
    )

  // Which facts are in the event log already, by execution. Used by `waiting`.
  private val factsLogged = newest()
  private val commonFactsLogged = newest()

  private val evicted = source.count("dropped.ring")
  source.count("errors")
  source.observe("dropped.queue")(droppedFrom(Queue))
  source.observe("dropped.event_log")(droppedFrom("eventLog"))
  source.observe("dropped.queries")(recorder.forgotten)
  failOpen("metrics", ())(sc.env.metricsSystem.registerSource(source))
  private val logged = AqePilotConf.LogFacts.inForce
  private val listening = failOpen("listener", false) {
    WithoutSession(sc.listenerBus.addToQueue(recorder, Queue))
    true
  }

  /** In the thread of the session: its redaction pattern holds. */
  def policyLoaded(e: AqePilotPolicyLoaded): Unit = failOpen("policy_loaded", ()) {
    sc.listenerBus.post(Redaction.policy(e, sc.conf, redaction))
  }

  /** The submitted pattern's, which a session cannot loosen, and then the session's own. */
  private def redaction: String => String = ofApplication andThen Redaction.ofTexts(SQLConf.get)

  /** In the thread of the session: its redaction pattern holds. All else is done [[Later]], and so
    * what `decisions` reads must not change any more. Facts that an execution has logged already are
    * left out of its events; in the live view every decision has its facts.
    *
    * @param facts
    *   of all these decisions
    */
  def decided(
      decisions: => Seq[Decided],
      facts: FactsText
  ): Unit =
    failOpen("decided", ()) {
      val redact = redaction
      later(decisions.foreach(write(_, facts, redact)))
    }

  private def write(
      decided: Decided,
      facts: FactsText,
      redact: String => String
  ): Unit = {
    val e = decided.event
    source.decided(e.point, e.reason, e.askedMicros)
    val decision = Redaction.decision(e, redact)
    recorder.decided(decided, redact)
    val isLogged = !factsLogged.add((e.executionId, e.factsId))
    val full =
      if (isLogged && ring.hasFacts(e.factsId)) None
      else facts(LoggedFacts.Full, redact)
    evicted.inc(ring.add(decision.copy(facts = full.map(_.whole))).toLong)
    val written =
      if (isLogged) None
      else if (logged == LoggedFacts.Full) full
      else facts(logged, redact)
    postLast(written.fold(decision) { facts =>
      facts.in(decision, !commonFactsLogged.add((e.executionId, facts.commonId)))
    })
  }

  override def control(e: AqePilotControl): Unit = failOpen("control", ()) {
    postLast(Redaction.control(e, ofApplication))
  }

  override def experiment(e: AqePilotExperiment): Unit = failOpen("experiment", ()) {
    postLast(Redaction.experiment(e, ofApplication))
  }

  override def later(work: => Unit): Unit = waiting(failOpen("later", ())(work))

  /** A figure that is read when the metrics are. */
  override def observe(name: String)(read: => Long): Unit =
    failOpen("metrics", ())(source.observe(name)(read))

  override def failed(what: String): Unit = source.failed(what)

  def nextDecisionId(): Long = ids.incrementAndGet()

  /** The live view, oldest first, of one session or (none) of all. Waits up to 10 s for what happened
    * before to be seen, so that the fates of a query that just ended are there.
    */
  def decisions(sessionId: Option[String]): Seq[(AqePilotDecision, Option[AqePilotFate])] =
    failOpen("decisions", Seq.empty[(AqePilotDecision, Option[AqePilotFate])]) {
      waiting.finish()
      if (listening && !sc.isStopped) {
        val barrier = new Barrier
        sc.listenerBus.post(barrier)
        barrier.passed.await(10, TimeUnit.SECONDS)
      }
      ring.decisions.filter(kept => sessionId.forall(_ == Owners.of(kept._1.sessionId)))
    }

  /** The counters of the metrics source, by name. */
  def counters: Seq[(String, Long)] =
    failOpen("counters", Seq.empty[(String, Long)]) {
      waiting.finish()
      source.values
    }

  /** A job's last query often closes while the application stops: Spark's bus takes no more events
    * then, but waits for our queue before it closes the event log.
    */
  private def postLast(event: SparkListenerEvent): Unit =
    if (sc.isStopped) sc.eventLogger.foreach(_.onOtherEvent(event))
    else sc.listenerBus.post(event)

  private def withLogged(closed: AqePilotQueryClosed): AqePilotQueryClosed =
    if (logged == LoggedFacts.Nothing) closed.copy(subPlans = Nil) else closed

  private def settle(fates: Seq[AqePilotFate]): Unit = evicted.inc(ring.settle(fates).toLong)

  private def droppedEvents: Long = droppedFrom(Queue) + droppedFrom("eventLog")

  private def droppedFrom(queue: String): Long = failOpen("dropped", 0L) {
    sc.listenerBus.metrics.metricRegistry.getMetrics.get(
      s"queue.$queue.numDroppedEvents"
    ) match {
      case counter: Counter => counter.getCount
      case _                => 0L
    }
  }
}

object DecisionLog extends Record.Source {
  val RingBytesKey = "spark.aqepilot.decisions.ring_bytes"
  val DefaultRingBytes: Long = 16L * 1024 * 1024
  private[aqepilot] val Queue = Application.Queue
  private val MaxFactsLogged = 10000

  /** Ids by execution, the oldest of which are forgotten. */
  private def newest() = Collections.newSetFromMap(
    new LinkedHashMap[(Option[Long], String), java.lang.Boolean] {
      override def removeEldestEntry(e: Map.Entry[(Option[Long], String), java.lang.Boolean]) =
        size > MaxFactsLogged
    }
  )

  /** Reads the fates. Tests put another in its place. */
  @volatile private[record] var fates: FateReader = Fates

  private val logs = new Application.Value(new DecisionLog(_))

  /** From now on what happens beneath the record is in it. */
  def begin(): Unit = Record.source = this

  override def addRun(sc: SparkContext, context: Map[String, String]): Unit = {
    val run = Runs.submitted(sc)
    context.put("job", run.job.value)
    context.put("run", run.run.value)
  }

  /** The log of an application, made on first use: call it before the first query with a policy runs,
    * so that the query's figures are complete.
    */
  override def of(sc: SparkContext): DecisionLog = logs.of(sc)

  /** The log of the running application, if it has been made. */
  def getActive: Option[DecisionLog] = logs.ofActive
}

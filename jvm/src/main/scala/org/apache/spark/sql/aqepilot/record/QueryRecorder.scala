package org.apache.spark.sql.aqepilot.record

import java.util.concurrent.CountDownLatch
import java.util.{LinkedHashMap, Map}

import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.Try

import org.apache.spark.scheduler._
import org.apache.spark.sql.aqepilot.decision.Decided
import org.apache.spark.sql.aqepilot.facts.{Fingerprint, InputBytes, PerQuery}
import org.apache.spark.sql.aqepilot.run.{Assigned, Control, Owners}
import org.apache.spark.sql.aqepilot.settings.RunIdentity
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.ui.{
  SparkListenerSQLExecutionEnd,
  SparkListenerSQLExecutionStart
}
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.log.{AqePilotFate, AqePilotQueryClosed, AqePilotSubPlan, EventSchema}

/** Follows each SQL execution to its end; if there were decisions in it, it is of an experiment, or something can be
  * learnt from it, has the decisions' fates read and posts how it went. What is known of an execution goes with its end; if that never comes, when
  * [[QueryRecorder.MaxQueries]] younger ones are open.
  *
  * @param learns
  *   whether what came of each query's sub-plans is measured
  */
final private[record] class QueryRecorder(
    post: AqePilotQueryClosed => Unit,
    settle: Seq[AqePilotFate] => Unit,
    claim: (Seq[Long], Long, Option[String]) => Unit,
    decisionsInHand: Later,
    droppedEvents: => Long,
    runOf: (Option[SQLConf], Long) => Option[RunIdentity],
    control: () => Option[Control],
    unitOf: (SQLConf, Long, Option[String], () => Option[String]) => Option[Assigned],
    learns: Boolean,
    failOpen: FailOpen
) extends SparkListener {
  import QueryRecorder._

  // All state is guarded by `this`: decisions come from the threads of queries.
  private val queries = new LinkedHashMap[Long, Query]
  // Decisions without an execution, until a query that runs their plan claims them; the oldest go.
  private val unclaimed = new LinkedHashMap[Long, Decided] {
    override def removeEldestEntry(e: Map.Entry[Long, Decided]) = size > MaxUnclaimed
  }
  private var openDecisions = 0
  private var openStages = 0
  private var forgottenQueries = 0L
  private val executionOf = new LinkedHashMap[Int, java.lang.Long] {
    override def removeEldestEntry(e: Map.Entry[Int, java.lang.Long]) = size > MaxOpenStages
  }

  /** How many queries had to make room before they ended. */
  def forgotten: Long = synchronized(forgottenQueries)

  def decided(decision: Decided, redact: String => String): Unit = synchronized {
    decision.event.executionId match {
      case Some(id) =>
        val query = opened(id)
        query.redact = redact
        query.decisions += decision
        openDecisions += 1
        makeRoom()
      case None => unclaimed.put(decision.event.decisionId, decision)
    }
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
    failOpen("application_end", ())(decisionsInHand.close())

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit =
    if (learns) failOpen("stage", ()) {
      for {
        properties <- Option(submitted.properties)
        id <- Option(properties.getProperty(SQLExecution.EXECUTION_ID_KEY))
      } synchronized(executionOf.put(submitted.stageInfo.stageId, id.toLong))
    }

  override def onStageCompleted(completed: SparkListenerStageCompleted): Unit =
    if (learns) failOpen("stage", ()) {
      val stage = completed.stageInfo
      val figures = StageFigures.of(stage)
      synchronized {
        val id = executionOf.remove(stage.stageId)
        val query = if (id == null) null else queries.get(id)
        if (query != null)
          if (query.stages.size < MaxStages) {
            query.stages += figures
            openStages += 1
            makeRoom()
          } else query.hasAllStages = false
      }
    }

  override def onOtherEvent(event: SparkListenerEvent): Unit = failOpen("event", ()) {
    event match {
      case barrier: Barrier                      => barrier.passed.countDown()
      case start: SparkListenerSQLExecutionStart => failOpen("query_start", ()) {
          synchronized {
            val query = opened(start.executionId)
            query.startedAt = Some(start.time)
          }
        }
      case end: SparkListenerSQLExecutionEnd => failOpen("query_end", ()) {
          Option(end.qe).foreach(PerQuery.ended)
          decisionsInHand.finish()
          closed(end.executionId).foreach { query =>
            val own = claimed(end)
            lazy val fingerprint = fingerprintOf(own ++ query.decisions, end)
            val session = Option(end.qe).map(_.sparkSession)
            val unit = session.flatMap { s =>
              failOpen("experiment", Option.empty[Assigned]) {
                unitOf(
                  s.sessionState.conf,
                  end.executionId,
                  Some(Owners.of(s.sessionUUID)),
                  () => fingerprint
                )
              }
            }
            val hasRun = learns && query.stages.nonEmpty
            if (own.nonEmpty || query.decisions.nonEmpty || unit.isDefined || hasRun) {
              val sessionId = (own ++ query.decisions).headOption.map(_.event.sessionId)
                .orElse(session.map(s => Owners.of(s.sessionUUID)))
              close(query, own, end, sessionId.getOrElse(""), fingerprint, unit)
            }
          }
        }
      case _ =>
    }
  }

  /** Those of the decisions without an execution that were made on the plan that has just run. A failed execution may
    * have no plan, and to ask for it would plan the query, and fail, once more.
    */
  private def claimed(end: SparkListenerSQLExecutionEnd): Seq[Decided] = {
    val candidates = synchronized(unclaimed.values.toArray(Array.empty[Decided])).toSeq
    if (candidates.isEmpty || end.qe == null || end.errorMessage.exists(_.nonEmpty)) Nil
    else {
      val claimed = failOpen("claim", Seq.empty[Decided]) {
        Fates.claimed(end.qe.executedPlan, candidates)
      }
      synchronized(claimed.foreach(d => unclaimed.remove(d.event.decisionId)))
      claimed
    }
  }

  private def close(
      query: Query,
      claimed: Seq[Decided],
      end: SparkListenerSQLExecutionEnd,
      sessionId: String,
      fingerprint: Option[String],
      unit: Option[Assigned]
  ): Unit = {
    val error = end.errorMessage.filter(_.nonEmpty)
    val decisions = claimed ++ query.decisions
    val fates = if (error.isEmpty) readFates(decisions, end) else Nil
    failOpen("settle", ())(settle(fates))
    val ids = claimed.map(_.event.decisionId)
    failOpen("claim", ())(claim(ids, end.executionId, fingerprint))
    val wallMillis = query.startedAt.map(end.time - _).getOrElse(end.duration / 1000000)
    // Decisions with the same facts were asked for at once.
    val asked = decisions.map(_.event).groupBy(_.factsId).values.map(_.head.askedMicros).sum
    unit.foreach { assigned =>
      failOpen("experiment", ()) {
        assigned.experiment.closed(
          assigned,
          error.exists(!isCancelled(_, end.executionFailure)),
          wallMillis,
          asked
        )
      }
    }
    val run = failOpen("run", Option.empty[RunIdentity]) {
      runOf(Option(end.qe).map(_.sparkSession.sessionState.conf), end.executionId)
    }
    val controlFile = failOpen("control", Option.empty[Control])(control())
    post(
      AqePilotQueryClosed(
        schemaVersion = EventSchema.Version,
        time = end.time,
        sessionId = sessionId,
        executionId = end.executionId,
        fingerprint = fingerprint,
        succeeded = error.isEmpty,
        error = error.map(text => query.redact(text).take(MaxErrorChars)),
        fates = fates,
        droppedEvents = droppedEvents - query.droppedBefore,
        claimed = ids,
        job = run.map(_.job.value),
        run = run.map(_.run.value),
        attempt = run.flatMap(_.attempt).map(_.value),
        experiment = unit.map(_.experiment.experiment.name),
        unit = unit.map(_.unit),
        arm = unit.map(_.arm.name),
        jobSource = run.map(_.job.source),
        runSource = run.map(_.run.source),
        attemptSource = run.flatMap(_.attempt).map(_.source),
        controlVersion = controlFile.flatMap(_.version),
        controlAgeMillis = controlFile.flatMap(_.age),
        planningMillis = failOpen("planning_time", Option.empty[Long])(planningMillis(end)),
        askedMicros = Some(asked),
        subPlans = if (learns) learnt(query, end, fingerprint) else Nil
      )
    )
  }

  /** All phases of Spark's QueryPlanningTracker; what AQE plans anew while the query runs is in none of them. */
  private def planningMillis(end: SparkListenerSQLExecutionEnd): Option[Long] =
    Option(end.qe).map(_.tracker.phases.values.map(_.durationMs).sum)

  /** What came of the query's sub-plans and, first, of all of it. Of one that failed nothing else is known, and of one
    * that somebody cancelled nothing at all.
    */
  private def learnt(
      query: Query,
      end: SparkListenerSQLExecutionEnd,
      fingerprint: Option[String]
  ): Seq[AqePilotSubPlan] = {
    val error = end.errorMessage.filter(_.nonEmpty)
    if (error.exists(isCancelled(_, end.executionFailure))) Nil
    else measured(query, end, fingerprint, error.isDefined)
  }

  private def measured(
      query: Query,
      end: SparkListenerSQLExecutionEnd,
      fingerprint: Option[String],
      failed: Boolean
  ): Seq[AqePilotSubPlan] = {
    val stages = query.stages.toSeq
    def sum(figure: StageFigures => Long) =
      if (query.hasAllStages) Some(stages.map(figure).sum) else None
    val whole = fingerprint.map(_.take(16)).map { name =>
      AqePilotSubPlan(
        "QUERY",
        name,
        name,
        inputBytes =
          if (failed) None
          else failOpen("sub_plans", Option.empty[Long])(
            Option(end.qe).flatMap(qe => InputBytes.of(qe.optimizedPlan))
          ),
        taskMillis = sum(_.taskMillis),
        spilledBytes = sum(_.spilledBytes),
        failures = Some(if (failed) 1 else 0)
      )
    }
    val parts =
      if (failed) Nil
      else failOpen("sub_plans", Seq.empty[AqePilotSubPlan]) {
        Option(end.qe).toSeq.flatMap { qe =>
          SQLConf.withExistingConf(qe.sparkSession.sessionState.conf) {
            new SubPlans(stages).of(qe.executedPlan)
          }
        }
      }
    whole.toSeq ++ parts
  }

  /** None for a query that Spark could not analyse: 4.3 says its end, too, and to ask for its plan throws the user's
    * error once more.
    */
  private def fingerprintOf(
      decisions: Seq[Decided],
      end: SparkListenerSQLExecutionEnd
  ): Option[String] =
    decisions.flatMap(_.event.fingerprint).headOption.orElse(
      failOpen("fingerprint", Option.empty[String])(
        Option(end.qe).flatMap(qe => Try(qe.analyzed).toOption)
          .flatMap(plan => Option(Fingerprint.of(plan)))
      )
    )

  private def readFates(
      decisions: Seq[Decided],
      end: SparkListenerSQLExecutionEnd
  ): Seq[AqePilotFate] =
    failOpen("fates", Seq.empty[AqePilotFate]) {
      Option(end.qe).map { qe =>
        SQLConf.withExistingConf(qe.sparkSession.sessionState.conf) {
          DecisionLog.fates.read(qe.executedPlan, decisions)
        }
      }.getOrElse(Nil)
    }

  private def opened(id: Long): Query = {
    if (!queries.containsKey(id)) {
      queries.put(id, new Query(droppedEvents))
      makeRoom()
    }
    queries.get(id)
  }

  private def makeRoom(): Unit =
    while (
      queries.size > MaxQueries || openDecisions > MaxDecisions || openStages > MaxOpenStages
    ) {
      closed(queries.keySet.iterator.next())
      forgottenQueries += 1
    }

  private def closed(id: Long): Option[Query] = synchronized {
    val query = Option(queries.remove(id))
    query.foreach { q =>
      openDecisions -= q.decisions.size
      openStages -= q.stages.size
    }
    query
  }
}

private[record] object QueryRecorder {
  val MaxQueries = 1000
  val MaxDecisions = 20000
  val MaxUnclaimed = 1000
  val MaxStages = 1000
  val MaxOpenStages = 5000
  private val MaxErrorChars = 4000

  // The name of the exception's class or of the error's condition may stand before it.
  private val Cancelled =
    "(?s)(?:[\\w.$]+: )?(?:\\[[A-Z_.]+\\] )?(?:Job \\d+ cancelled\\b|Operation has been cancell?ed\\b).*".r

  /** Whether somebody ended a query that could have gone on. */
  def isCancelled(error: String, failure: Option[Throwable]): Boolean = {
    def says(text: String) = text != null && Cancelled.pattern.matcher(text).matches
    @tailrec def because(e: Throwable, depth: Int): Boolean = e match {
      case null                                                 => false
      case _: InterruptedException                              => true
      case _ if says(e.getMessage)                              => true
      case _ if depth > MaxCauses                               => false
      case _ if e.getSuppressed.exists(s => says(s.getMessage)) => true
      case _                                                    => because(e.getCause, depth + 1)
    }
    says(error) || failure.exists(because(_, 0))
  }

  private val MaxCauses = 20

  /** Goes through the queue of our listener behind all that was posted before it. */
  final class Barrier extends SparkListenerEvent {
    val passed = new CountDownLatch(1)
    override protected[spark] def logEvent: Boolean = false
  }

  final private class Query(val droppedBefore: Long) {
    var startedAt: Option[Long] = None
    var redact: String => String = identity
    val decisions = mutable.ArrayBuffer.empty[Decided]
    val stages = mutable.ArrayBuffer.empty[StageFigures]
    var hasAllStages = true
  }
}

package io.aqepilot.log

import com.fasterxml.jackson.annotation.JsonInclude
import com.fasterxml.jackson.databind.annotation.JsonDeserialize
import org.apache.spark.scheduler.SparkListenerEvent

/** The schema of the events in this file. A reader of logs goes by it; fields are only ever added.
  */
object EventSchema {
  val Version = 2
}

/** A policy was read at one point: once per text, source and session. A null `error` means that it
  * is good and will be asked.
  *
  * @param revision
  *   first 12 hex digits of SHA-256 over text, NUL and `when`; decisions carry only this
  * @param source
  *   `submitted` (in the configuration the application was started with) or `session`
  * @param limit
  *   why the mode is less than the configuration says: the run is one that its scheduler tries again, or a rule of the
  *   control file
  */
final case class AqePilotPolicyLoaded(
    schemaVersion: Int,
    time: Long,
    sessionId: String,
    policy: String,
    point: String,
    revision: String,
    text: String,
    when: Option[String],
    mode: String,
    source: String,
    user: String,
    error: Option[String],
    limit: Option[String] = None
) extends SparkListenerEvent

/** The control file was read and says something else than before, or cannot be read any more, or can again; a reading
  * that hangs counts as one that cannot.
  *
  * @param path
  *   where the file is, as submitted
  * @param version
  *   of the copy that holds; none where there is none
  * @param rules
  *   those that hold from now on, for a person
  * @param problem
  *   why the newest copy is not known, if so
  * @param ageMillis
  *   since the copy that holds was read, milliseconds; none where there is none
  */
final case class AqePilotControl(
    schemaVersion: Int,
    time: Long,
    path: String,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) version: Option[Long],
    rules: Seq[String],
    problem: Option[String],
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) ageMillis: Option[Long] = None
) extends SparkListenerEvent

/** A unit of an experiment got its arm, differs from the other arms from now on, or goes on as control.
  *
  * @param experiment
  *   its name
  * @param unitKind
  *   `job_run`, `query_run` or `session`
  * @param unit
  *   what the draw was for: `job|run`, `job|run|fingerprint`, or the session's id
  * @param arm
  *   what it was assigned, also after it was stopped; of `stopped`, the arm that was
  * @param arms
  *   all with their weights in percent, the control first
  * @param metric
  *   what decides
  * @param what
  *   `assigned`, `exposed` (the first decision on which the arms differ) or `stopped` (by a guard rail: the arm is not in
  *   force in this application any more)
  * @param detail
  *   what each arm says, or why it was stopped
  * @param job
  *   the job that runs, the same name on each day
  * @param run
  *   the run of the job, the same when its scheduler tries it again
  * @param attempt
  *   how many times the run has been started, this time included; none when nothing says so
  */
final case class AqePilotExperiment(
    schemaVersion: Int,
    time: Long,
    experiment: String,
    unitKind: String,
    unit: String,
    arm: String,
    arms: String,
    metric: String,
    what: String,
    detail: Option[String],
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) executionId: Option[Long],
    job: String,
    run: String,
    @JsonDeserialize(contentAs = classOf[java.lang.Integer]) attempt: Option[Int]
) extends SparkListenerEvent

/** What was proposed at one decision point, for one subject (a join's side, a group of shuffles, ...) and one
  * set of facts.
  *
  * @param executionId
  *   none while nothing is executed (`explain`, `df.rdd`)
  * @param facts
  *   the facts as JSON, but for those in `commonFacts`; only in the first event of an execution that has this `factsId`
  * @param mode
  *   of the policy; none where none had an answer
  * @param answer
  *   the policy's answer; none is *leave it to Spark*
  * @param sparkAnswer
  *   the answer of Spark's own rule, in the same words
  * @param sparkStrategy
  *   the strategy Spark would plan without us
  * @param askedMicros
  *   time that the query waited for the answers and for facts, in microseconds
  * @param subject
  *   what it is about, e.g. `join 3, left side`: unique in its query at its point
  * @param commonFactsId
  *   equal where `commonFacts` are; in each event with `facts`. None before schema version 2, where `facts` has all of
  *   them
  * @param commonFacts
  *   the facts `query`, `conf` and `cluster` as JSON, only in the first event of an execution that has this
  *   `commonFactsId`
  */
final case class AqePilotDecision(
    schemaVersion: Int,
    time: Long,
    decisionId: Long,
    sessionId: String,
    // Scala erases the element type of Option[Long]: Jackson would read back an Integer.
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) executionId: Option[Long],
    fingerprint: Option[String],
    point: String,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) joinId: Option[Long],
    side: Option[String],
    tables: Option[String],
    factsId: String,
    facts: Option[String],
    policy: Option[String],
    revision: Option[String],
    mode: Option[String],
    answer: Option[String],
    sparkAnswer: Option[String],
    sparkStrategy: Option[String],
    applied: Boolean,
    reason: String,
    detail: Option[String],
    askedMicros: Double,
    subject: Option[String],
    commonFactsId: Option[String] = None,
    commonFacts: Option[String] = None
) extends SparkListenerEvent

/** What became of a decision, read off the final plan.
  *
  * @param fate
  *   `adopted`, `refused_by_cost`, `no_change`, `superseded` or `gone`
  */
final case class AqePilotFate(decisionId: Long, fate: String, finalStrategy: Option[String])

/** What came of a sub-plan of a query: a part of it at a boundary where Spark decides. Figures that are not known are left
  * out.
  *
  * @param kind
  *   `PLAN` (its rows), `SHUFFLE` (its rows by the keys of a shuffle) or `QUERY` (the whole query)
  * @param same
  *   its signature with its literals, 16 hex digits; of a query the first digits of the fingerprint
  * @param shape
  *   its signature without its literals
  * @param inputBytes
  *   of all that it reads, as stored
  * @param rows
  *   that it put out, after the pruning and the filters that Spark made of other parts of the query
  * @param bytes
  *   of those, uncompressed
  * @param shuffleBytes
  *   of those, compressed, all partitions together
  * @param partitions
  *   of the shuffle, as written
  * @param maxPartitionBytes
  *   compressed
  * @param medianPartitionBytes
  *   compressed, at least 1
  * @param inputRows
  *   that went into an aggregate of each task, whose groups `rows` are
  * @param taskMillis
  *   of all tasks of the stages that read the shuffle; of the query's stages
  * @param readBytes
  *   by those stages, of shuffles, compressed, and of files
  * @param readRows
  *   by those stages
  * @param spilledBytes
  *   by those stages, on disk
  * @param peakMemoryBytes
  *   of a task's execution memory: the mean of a stage, the largest of those stages
  * @param failures
  *   attempts of those stages that failed; 1 for a query that failed
  */
@JsonInclude(JsonInclude.Include.NON_ABSENT)
final case class AqePilotSubPlan(
    kind: String,
    same: String,
    shape: String,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) inputBytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) rows: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) bytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) shuffleBytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Integer]) partitions: Option[Int] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) maxPartitionBytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) medianPartitionBytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) inputRows: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) taskMillis: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) readBytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) readRows: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) spilledBytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) peakMemoryBytes: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Integer]) failures: Option[Int] = None
)

/** A query with at least one decision, of an experiment, or from which history is learnt, has ended. How it went is in
  * Spark's own events.
  *
  * @param fates
  *   empty for a query that failed
  * @param droppedEvents
  *   events that Spark's listener queues dropped while this query ran: above 0, the event log may
  *   lack something
  * @param claimed
  *   ids of decisions without an `executionId` that are this query's: made when its plan was explained or cached
  * @param job
  *   the job that runs, the same name on each day
  * @param run
  *   the run of the job, the same when its scheduler tries it again
  * @param attempt
  *   how many times the run has been started, this time included; none when nothing says so
  * @param experiment
  *   the experiment that it is of; none outside one
  * @param unit
  *   as `AqePilotExperiment` has it
  * @param arm
  *   what the unit was assigned
  * @param jobSource
  *   what says which job it is: `SETTING`, `DBT`, `OPENLINEAGE`, `AIRFLOW` or `UNKNOWN_RUN`
  * @param runSource
  *   the same of the run
  * @param attemptSource
  *   the setting or environment variable that says the attempt
  * @param controlVersion
  *   of the control file, when the query ended; none without one, or where it was never read
  * @param controlAgeMillis
  *   since the control file had been read last, milliseconds
  * @param planningMillis
  *   all phases of Spark's QueryPlanningTracker, milliseconds: parsing, analysis, optimization, planning; what AQE plans
  *   anew while the query runs is in none of them
  * @param askedMicros
  *   time for all answers and facts of its decisions, microseconds
  * @param subPlans
  *   what came of its parts, for history; none where `spark.aqepilot.history.learn` is false
  */
final case class AqePilotQueryClosed(
    schemaVersion: Int,
    time: Long,
    sessionId: String,
    executionId: Long,
    fingerprint: Option[String],
    succeeded: Boolean,
    error: Option[String],
    fates: Seq[AqePilotFate],
    droppedEvents: Long,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) claimed: Seq[Long] = Nil,
    job: Option[String] = None,
    run: Option[String] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Integer]) attempt: Option[Int] = None,
    experiment: Option[String] = None,
    unit: Option[String] = None,
    arm: Option[String] = None,
    jobSource: Option[String] = None,
    runSource: Option[String] = None,
    attemptSource: Option[String] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) controlVersion: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) controlAgeMillis: Option[Long] = None,
    @JsonDeserialize(contentAs = classOf[java.lang.Long]) planningMillis: Option[Long] = None,
    askedMicros: Option[Double] = None,
    subPlans: Seq[AqePilotSubPlan] = Nil
) extends SparkListenerEvent

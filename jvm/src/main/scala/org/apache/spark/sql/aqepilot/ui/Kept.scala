package org.apache.spark.sql.aqepilot.ui

import org.apache.spark.status.KVUtils.KVIndexParam

import io.aqepilot.log.{
  AqePilotControl,
  AqePilotDecision,
  AqePilotExperiment,
  AqePilotFate,
  AqePilotPolicyLoaded,
  AqePilotQueryClosed
}

// What Spark's status store keeps of the record. A history server may keep its store on disk, as JSON of the
// constructors' parameters.

/** A query with decisions, or of an experiment.
  *
  * @param id
  *   Spark's id of the execution, or [[KeptQuery.NotRun]]
  * @param time
  *   of its first event, milliseconds
  * @param adopted
  *   how many of the applied decisions the query ran by
  * @param refused
  *   answers that were neither applied nor in shadow
  * @param leftOut
  *   decisions that there was no room for
  * @param closed
  *   how it ended, without its fates and sub-plans; none while it runs
  */
final private[ui] case class KeptQuery(
    @KVIndexParam id: Long,
    time: Long,
    decisions: Int = 0,
    applied: Int = 0,
    adopted: Int = 0,
    refused: Int = 0,
    shadow: Int = 0,
    leftOut: Int = 0,
    closed: Option[AqePilotQueryClosed] = None
)

private[ui] object KeptQuery {

  /** Of decisions for `explain`, an RDD or a plan to keep, until a query runs by them. */
  val NotRun: Long = -1
}

/** A decision, without its facts. */
final private[ui] case class KeptDecision(
    @KVIndexParam id: Long,
    @KVIndexParam("query") query: Long,
    decision: AqePilotDecision,
    fate: Option[AqePilotFate]
)

/** The facts that decisions of one query share, but for those that every point has.
  *
  * @param id
  *   as [[KeptFacts.id]] gives it
  */
final private[ui] case class KeptFacts(
    @KVIndexParam id: String,
    @KVIndexParam("query") query: Long,
    json: String
)

private[ui] object KeptFacts {
  def id(query: Long, factsId: String): String = s"$query $factsId"
}

/** A policy at one point in one session, as it was loaded last. */
final private[ui] case class KeptPolicy(@KVIndexParam id: String, loaded: AqePilotPolicyLoaded)

/** The state of one unit of an experiment. */
final private[ui] case class KeptUnit(@KVIndexParam id: String, state: AqePilotExperiment)

/** A reading of the control file that changed something, the later ones with the higher numbers. */
final private[ui] case class KeptControl(@KVIndexParam id: Long, reading: AqePilotControl)

/** What made room.
  *
  * @param id
  *   always the same
  */
final private[ui] case class KeptLosses(@KVIndexParam id: Int, queries: Long)

package org.apache.spark.sql.aqepilot.sql

import java.time.Instant

import org.apache.spark.sql.aqepilot.facts.{Fact, FactType, Facts}

import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** The columns of `aqepilot_decisions()`. Their meanings stand at `aqepilot.decision.Decision`. */
private object DecisionRow {

  /** A decision of the live view, and what became of it. */
  type Kept = (AqePilotDecision, Option[AqePilotFate])

  private val declared = Fact.of[Kept]

  private def column[T: FactType](name: String)(value: Kept => T): Fact[Kept] =
    declared(name, "")(value)

  val columns: Facts[Kept] = new Facts(
    column("time")(d => Instant.ofEpochMilli(d._1.time)),
    column("decision_id")(_._1.decisionId),
    column("session_id")(_._1.sessionId),
    column("execution_id")(_._1.executionId),
    column("fingerprint")(_._1.fingerprint),
    column("point")(_._1.point),
    column("join_id")(_._1.joinId),
    column("side")(_._1.side),
    column("tables")(_._1.tables),
    column("facts_id")(_._1.factsId),
    column("facts")(_._1.facts),
    column("policy")(_._1.policy),
    column("revision")(_._1.revision),
    column("mode")(_._1.mode),
    column("answer")(_._1.answer),
    column("spark_answer")(_._1.sparkAnswer),
    column("spark_strategy")(_._1.sparkStrategy),
    column("applied")(_._1.applied),
    column("reason")(_._1.reason),
    column("detail")(_._1.detail),
    column("asked_us")(_._1.askedMicros),
    column("fate")(_._2.map(_.fate)),
    column("final_strategy")(_._2.flatMap(_.finalStrategy)),
    column("subject")(_._1.subject)
  )
}

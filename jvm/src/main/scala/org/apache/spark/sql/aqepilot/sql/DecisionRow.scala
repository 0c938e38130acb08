package org.apache.spark.sql.aqepilot.sql

import java.time.Instant

import org.apache.spark.sql.aqepilot.facts.{Fact, FactType, Facts}

import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** The columns of `aqepilot_decisions()`: Python and the docs have theirs from here, by the catalogue. */
private[aqepilot] object DecisionRow {

  /** A decision of the live view, and what became of it. */
  type Kept = (AqePilotDecision, Option[AqePilotFate])

  /** @param isOptional
    *   whether a row may lack it
    */
  final case class Column(fact: Fact[Kept], isOptional: Boolean)

  private val declared = Fact.of[Kept]

  private def column[T: FactType](name: String, meaning: String)(value: Kept => T) =
    Column(declared(name, meaning)(value), isOptional = false)

  private def optional[T: FactType](name: String, meaning: String)(value: Kept => Option[T]) =
    Column(declared(name, meaning)(value), isOptional = true)

  val all: Seq[Column] = Seq(
    column(
      "time",
      "When it was made, in the session's time zone."
    )(d => Instant.ofEpochMilli(d._1.time)),
    column(
      "decision_id",
      "Unique in the driver, rising."
    )(_._1.decisionId),
    column(
      "session_id",
      "The Spark session whose query it was."
    )(_._1.sessionId),
    optional(
      "execution_id",
      "Spark's id of the query's execution, as in its UI; null before there is one."
    )(_._1.executionId),
    optional(
      "fingerprint",
      "The same for the same query on any day, whatever the policy; null when it could not be " +
        "computed."
    )(_._1.fingerprint),
    column(
      "point",
      "The decision point."
    )(_._1.point),
    optional(
      "join_id",
      "The join, stable for the query's life; null at points that are not about joins."
    )(_._1.joinId),
    optional(
      "side",
      "`left` or `right`; null where it is about no side."
    )(_._1.side),
    optional(
      "tables",
      "The tables that are read beneath, by side for a join; null when they are not known."
    )(_._1.tables),
    column(
      "facts_id",
      "The facts' id; decisions on equal facts share it."
    )(_._1.factsId),
    optional(
      "facts",
      "The facts as recorded, as JSON; null when another decision of this `facts_id` has them."
    )(_._1.facts),
    optional(
      "policy",
      "Whose answer it was; null when no policy had one."
    )(_._1.policy),
    optional(
      "revision",
      "The revision of that policy at this point; null when no policy had one."
    )(_._1.revision),
    optional(
      "mode",
      "`shadow` or `enforce`; null when no policy had an answer."
    )(_._1.mode),
    optional(
      "answer",
      "The policy's answer, a struct as JSON without its nulls; null is Spark's own choice."
    )(_._1.answer),
    optional(
      "spark_answer",
      "The answer of Spark's own rule; null where it has none."
    )(_._1.sparkAnswer),
    optional(
      "spark_strategy",
      "What Spark would have run; null when that cannot be told."
    )(_._1.sparkStrategy),
    column(
      "applied",
      "Whether the answer was put into the plan."
    )(_._1.applied),
    column(
      "reason",
      "Why the answer was applied or not, as a code: see the reasons."
    )(_._1.reason),
    optional(
      "detail",
      "More about the reason, in words; null when there is no more."
    )(_._1.detail),
    column(
      "asked_us",
      "How long the query waited for the answers and for facts, in microseconds."
    )(_._1.askedMicros),
    optional(
      "fate",
      "`adopted`, `refused_by_cost`, `no_change`, `superseded` or `gone`; null while the query " +
        "runs, when it failed and when the answer was not applied."
    )(_._2.map(_.fate)),
    optional(
      "final_strategy",
      "What ran; null while the query runs and when it cannot be told."
    )(_._2.flatMap(_.finalStrategy)),
    optional(
      "subject",
      "What the decision is about, e.g. `join 3, left side`: unique in its query at its point; " +
        "null when nobody could be asked."
    )(_._1.subject)
  )

  val columns: Facts[Kept] = new Facts(all.map(_.fact): _*)
}

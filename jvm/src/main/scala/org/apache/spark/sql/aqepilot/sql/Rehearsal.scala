package org.apache.spark.sql.aqepilot.sql

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, Guardrails, Guards, LegalAnswers}
import org.apache.spark.sql.aqepilot.facts.{FactsJson, FactsRow}
import org.apache.spark.sql.aqepilot.policy.python.Caller
import org.apache.spark.sql.aqepilot.policy.{Answer, PolicyTexts}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{JsonToStructs, Literal}
import org.apache.spark.sql.internal.SQLConf

/** Decides on facts that somebody wrote down instead of on a running query. */
object Rehearsal {

  /** Guard rails of no cluster in particular, where a session's are not to be had. */
  private val NoGuards =
    Guards(Long.MaxValue, Long.MaxValue, Long.MaxValue, 1.0, Int.MaxValue, Int.MaxValue)

  /** @param facts
    *   JSON object; facts that are missing are null
    * @return
    *   answer, decision, reason, detail
    * @throws IllegalArgumentException
    *   for an unknown point, a text that does not bind, facts that are not JSON
    */
  def decide(pointName: String, text: String, facts: String): Seq[Any] = {
    val point = known(pointName)
    decide(point, text, parse(point, facts), guards)
  }

  private[aqepilot] def decide[D](
      point: DecisionPoint[D],
      text: String,
      facts: InternalRow,
      guards: Guards
  ): Seq[Any] =
    PolicyTexts.compile(text, point, Caller.session(SQLConf.get)) match {
      case Left(e)       => throw new IllegalArgumentException(s"${e.code}: ${e.message}")
      case Right(policy) =>
        policy.eval(facts) match {
          case Left(failure) => Seq(None, None, failure.reason.code, Some(failure.message))
          case Right(null)   => Seq(None, None, Reason.NullAnswer.code, None)
          case Right(value)  =>
            val answer = new Answer(point, value)
            val verdict = point.judge(answer.decision, new FactsRow(point.facts, facts), guards)
            val decision = verdict.decision.map(d => point.show(point.toAnswer(d)))
            Seq(Some(answer.text), decision, verdict.reason.code, verdict.detail)
        }
    }

  /** The legal answers on these facts, under the session's guard rails.
    *
    * @throws IllegalArgumentException
    *   for an unknown point, and facts that are not JSON
    */
  def legal(pointName: String, facts: String, most: Int): Seq[String] = {
    val point = known(pointName)
    LegalAnswers.of(point, parse(point, facts), guards, most)
  }

  private def known(pointName: String): DecisionPoint[_] = PointArgument
    .point(pointName)
    .fold(wrong => throw new IllegalArgumentException(wrong.message), known => known)

  private def guards: Guards =
    Sessions.active.fold(NoGuards)(s => Guardrails.of(SQLConf.get, s.sparkContext))

  /** A facts row out of JSON, as somebody wrote it or as the record has it. */
  def parse(point: DecisionPoint[_], facts: String): InternalRow = {
    val parsed = JsonToStructs(
      point.facts,
      Map("mode" -> "FAILFAST"),
      Literal(FactsJson.unpacked(facts)),
      Some("UTC")
    ).eval()
    if (parsed == null) throw new IllegalArgumentException("the facts are null")
    parsed.asInstanceOf[InternalRow]
  }
}

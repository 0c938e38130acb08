package org.apache.spark.sql.aqepilot.policy

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, Guardrails, Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.{FactFault, FactsRow, LazyRow, QueryFacts}
import org.apache.spark.sql.aqepilot.policy.sql.AskBudget
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Mode}
import org.apache.spark.sql.aqepilot.spark.{Application, FailOpen, Record, Sessions}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/** What a policy answered.
  *
  * @param value
  *   a Catalyst value, never null
  */
final class Answer[D](point: DecisionPoint[D], value: Any) {

  /** What it says. */
  val decision: D = point.parse(value)

  /** As it stands in the record. */
  lazy val text: String = point.show(value)
}

/** One policy's answer, or why there is none. */
final case class PolicyAnswer[D](
    policy: NamedPolicy,
    answer: Either[EvaluationFailure, Answer[D]]
)

/** What asking gave.
  *
  * @param facts
  *   all of them, also those that no policy read; those that are fixed may be computed when they are read
  * @param verdicts
  *   each policy's answer and what is made of it, in the order of asking
  * @param micros
  *   time for the answers and the facts that the query had to wait for, those of an experiment's other arms included
  */
final case class Asked[D](
    facts: InternalRow,
    verdicts: Seq[(PolicyAnswer[D], Verdict[D])],
    micros: Double
) {

  /** The decision to carry out. */
  def decision: Option[D] = enforced.map(_._2)

  /** The policy whose decision is carried out. */
  def decidedBy: Option[PolicyAnswer[D]] = enforced.map(_._1)

  private def enforced: Option[(PolicyAnswer[D], D)] = verdicts.collectFirst {
    case (by, Verdict(Some(decision), _, _)) if by.policy.mode == Mode.Enforce => (by, decision)
  }
}

/** Asks the policies of a point in their order.
  *
  * A null answer, or one that failed, asks the next; the first that enforces ends it. Policies in shadow mode
  * are asked along the way and stop nobody.
  */
object Asking {

  /** @param answer
    *   how a policy comes to an answer, where that takes more than these facts
    * @param judge
    *   what is made of an answer, where that takes more
    * @param begun
    *   when the first fact was computed, by `System.nanoTime`, where that was before
    * @param facts
    *   the point's facts row, whose first field is `query`; computed when read
    */
  def of[D](
      session: Sessions.Classic,
      set: PolicySet,
      point: DecisionPoint[D],
      executionId: Option[Long],
      answer: (CompiledPolicy, LazyRow) => Either[EvaluationFailure, Any] = _.eval(_),
      judge: Option[(D, FactsRow, Guards) => Verdict[D]] = None,
      begun: Long = System.nanoTime()
  )(facts: => LazyRow): Asked[D] =
    unwrapping {
      val sc = session.sparkContext
      val fingerprint =
        QueryFacts.fingerprint(executionId) // once for a query, before any policy is asked
      val row = facts
      lazy val guards = Guardrails.of(session.sessionState.conf, sc)
      def verdicts(policies: PolicySet): Seq[(PolicyAnswer[D], Verdict[D])] = {
        val asked = policies.at(point, fingerprint)
        val answers = AskBudget.within(deadline.of(sc))(ask(point, asked, row, answer))
        answers.map { by =>
          by -> by.answer.fold(
            failure => Verdict(None, failure.reason, Some(failure.message)),
            answer =>
              judge.getOrElse(point.judge _)(
                answer.decision,
                new FactsRow(point.facts, row),
                guards
              )
          )
        }
      }
      val own = verdicts(set)
      row.settle()
      def asked = Asked(row, own, (System.nanoTime() - begun) / 1e3)
      val decision = asked.decision
      set.otherArms.foreach { others =>
        FailOpen("experiment", ()) {
          others.compare(point, executionId, decision) { other =>
            Asked(row, verdicts(other), 0).decision
          }
        }
      }
      FailOpen("record", row.finish())(Record.of(sc).later(row.finish()))
      asked
    }

  /** In nanoseconds. */
  private val deadline = new Application.Value(_ =>
    AqePilotConf.AskDeadline.inForce * 1000 * 1000
  )

  /** Who recovers from a fault sees the fault itself, and tells its kind. */
  private def unwrapping[T](body: => T): T =
    try body
    catch { case e: FactFault => throw e.getCause }

  /** @return
    *   every answer that was not null, in order; the last is the one to apply if it enforces and did not fail
    */
  private def ask[D](
      point: DecisionPoint[D],
      policies: Seq[NamedPolicy],
      facts: LazyRow,
      answer: (CompiledPolicy, LazyRow) => Either[EvaluationFailure, Any]
  ): Seq[PolicyAnswer[D]] = {
    val answers = Seq.newBuilder[PolicyAnswer[D]]
    val rest = policies.iterator
    var decided = false
    while (!decided && rest.hasNext) {
      val policy = rest.next()
      isMeant(policy, facts) match {
        case Left(failure) => answers += PolicyAnswer[D](policy, Left(failure))
        case Right(false)  =>
        case Right(true)   =>
          policy.compiled.foreach(answer(_, facts) match {
            case Right(null) =>
            case value       =>
              answers += PolicyAnswer(policy, value.map(new Answer(point, _)))
              decided = value.isRight && policy.mode == Mode.Enforce
          })
      }
    }
    answers.result()
  }

  private def isMeant(policy: NamedPolicy, facts: InternalRow): Either[EvaluationFailure, Boolean] =
    policy.whenCompiled match {
      case Some(Right(when)) =>
        when.eval(new GenericInternalRow(Array[Any](facts.getStruct(0, Int.MaxValue)))) match {
          case Right(value)  => Right(value == true)
          case Left(failure) => Left(failure)
        }
      case _ => Right(true)
    }
}

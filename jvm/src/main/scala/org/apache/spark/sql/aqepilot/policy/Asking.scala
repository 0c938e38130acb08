package org.apache.spark.sql.aqepilot.policy

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, Guardrails, Guards, Verdict}
import org.apache.spark.sql.aqepilot.facts.{FactFault, FactsRow, LazyRow, QueryFacts}
import org.apache.spark.sql.aqepilot.policy.sql.AskBudget
import org.apache.spark.sql.aqepilot.settings.{AqePilotConf, Mode}
import org.apache.spark.sql.aqepilot.spark.{FailOpen, PerApplication, Sessions}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

/** One policy's answer, a Catalyst value that is never null, or why there is none. */
final case class PolicyAnswer(policy: NamedPolicy, value: Either[EvaluationFailure, Any])

/** What asking gave.
  *
  * @param facts
  *   all of them, also those that no policy read
  * @param verdicts
  *   each policy's answer and what is made of it, in the order of asking
  * @param micros
  *   time for all these facts and the answers, those of an experiment's other arms included
  */
final case class Asked(
    facts: InternalRow,
    verdicts: Seq[(PolicyAnswer, Verdict)],
    micros: Double
) {

  /** The decision to carry out, with the policy that took it. */
  def enforced: Option[(PolicyAnswer, Any)] = verdicts.collectFirst {
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
  def of(
      session: Sessions.Classic,
      set: PolicySet,
      point: DecisionPoint,
      executionId: Option[Long],
      answer: (CompiledPolicy, LazyRow) => Either[EvaluationFailure, Any] = _.eval(_),
      judge: Option[(Any, FactsRow, Guards) => Verdict] = None,
      begun: Long = System.nanoTime()
  )(facts: => LazyRow): Asked =
    unwrapping {
      val sc = session.sparkContext
      val fingerprint =
        QueryFacts.fingerprint(executionId) // once for a query, before any policy is asked
      val row = facts
      lazy val guards = Guardrails.of(session.sessionState.conf, sc)
      def verdicts(of: PolicySet) = {
        val asked = of.at(point, fingerprint)
        val answers = AskBudget.within(deadline.of(sc))(ask(asked, row, answer))
        answers.map { given =>
          given -> (given.value match {
            case Left(failure) => Verdict(None, failure.reason, Some(failure.message))
            case Right(value)  =>
              judge.getOrElse(point.judge _)(value, new FactsRow(point.facts, row), guards)
          })
        }
      }
      val own = verdicts(set)
      val all = row.copy()
      def asked = Asked(all, own, (System.nanoTime() - begun) / 1e3)
      val enforced = asked.enforced.map(_._2)
      set.otherArms.foreach { others =>
        FailOpen("experiment", ()) {
          others.compare(point, executionId, enforced) { other =>
            Asked(all, verdicts(other), 0).enforced.map(_._2)
          }
        }
      }
      asked
    }

  /** In nanoseconds. */
  private val deadline = new PerApplication(_ =>
    AqePilotConf.toMillis(AqePilotConf.inForce(AqePilotConf.AskDeadline)) * 1000 * 1000
  )

  /** Who recovers from a fault sees the fault itself, and tells its kind. */
  private def unwrapping[T](body: => T): T =
    try body
    catch { case e: FactFault => throw e.getCause }

  /** @return
    *   every answer that was not null, in order; the last is the one to apply if it enforces and did not fail
    */
  private def ask(
      policies: Seq[NamedPolicy],
      facts: LazyRow,
      answer: (CompiledPolicy, LazyRow) => Either[EvaluationFailure, Any]
  ): Seq[PolicyAnswer] = {
    val answers = Seq.newBuilder[PolicyAnswer]
    val rest = policies.iterator
    var decided = false
    while (!decided && rest.hasNext) {
      val policy = rest.next()
      isMeant(policy, facts) match {
        case Left(failure) => answers += PolicyAnswer(policy, Left(failure))
        case Right(false)  =>
        case Right(true)   =>
          policy.compiled.foreach(answer(_, facts) match {
            case Right(null) =>
            case given       =>
              answers += PolicyAnswer(policy, given)
              decided = given.isRight && policy.mode == Mode.Enforce
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

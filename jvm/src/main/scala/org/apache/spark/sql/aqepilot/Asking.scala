package org.apache.spark.sql.aqepilot

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow

import io.aqepilot.decision.DecisionPoint
import io.aqepilot.policy.EvaluationFailure

/** One policy's answer, a Catalyst value that is never null, or why there is none. */
final case class PolicyAnswer(policy: NamedPolicy, value: Either[EvaluationFailure, Any])

/** Asks the policies of a point in their order.
  *
  * A null answer, or one that failed, asks the next; the first that enforces ends it. Policies in shadow mode
  * are asked along the way and stop nobody.
  */
object Asking {

  /** @param facts
    *   the point's facts row, whose first field is `query`
    * @return
    *   every answer that was not null, in order; the last is the one to apply if it enforces and did not fail
    */
  def ask(set: PolicySet, point: DecisionPoint, facts: InternalRow): Seq[PolicyAnswer] = {
    val answers = Seq.newBuilder[PolicyAnswer]
    val rest = set.at(point).iterator
    var decided = false
    while (!decided && rest.hasNext) {
      val policy = rest.next()
      isMeant(policy, facts) match {
        case Left(failure) => answers += PolicyAnswer(policy, Left(failure))
        case Right(false)  =>
        case Right(true)   =>
          policy.compiled.foreach(_.eval(facts) match {
            case Right(null) =>
            case answer      =>
              answers += PolicyAnswer(policy, answer)
              decided = answer.isRight && policy.mode == Mode.Enforce
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

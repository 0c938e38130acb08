package org.apache.spark.sql.aqepilot.policy

import org.apache.spark.sql.aqepilot.policy.sql.AskBudget
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

/** A policy that is left alone for a while after it has cost too much several times in a row. */
final class BoundedPolicy(policy: CompiledPolicy, breaker: Breaker) extends CompiledPolicy {

  override def text: String = policy.text
  override def answer: DataType = policy.answer
  override def code: Option[String] = policy.code
  override def references(path: String): Boolean = policy.references(path)
  override def rehearse(facts: InternalRow): Unit = policy.rehearse(facts)

  override def eval(facts: InternalRow): Either[EvaluationFailure, Any] =
    if (!breaker.admits())
      Left(EvaluationFailure("It cost too much.", Reason.EvaluationBreakerOpen))
    else {
      var isTold = false
      val begun = AskBudget.now()
      try {
        val answer = policy.eval(facts)
        answer match {
          // The policies that were asked before have spent the ask's time.
          case Left(EvaluationFailure(_, Reason.EvaluationDeadline))
              if !AskBudget.isSpentSince(begun) =>
          case Left(EvaluationFailure(_, Reason.EvaluationDeadline | Reason.EvaluationTooLarge)) =>
            isTold = true
            breaker.failed()
          case _ =>
            isTold = true
            breaker.succeeded()
        }
        answer
      } finally if (!isTold) breaker.unasked()
    }
}

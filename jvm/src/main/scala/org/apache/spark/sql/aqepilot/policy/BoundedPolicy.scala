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

  override def eval(facts: InternalRow): Either[EvaluationFailure, Any] = {
    val begun = AskBudget.now()
    breaker.ask() {
      val answer = policy.eval(facts)
      (answer, went(answer, begun))
    }.getOrElse(Left(EvaluationFailure("It cost too much.", Reason.EvaluationBreakerOpen)))
  }

  private def went(answer: Either[EvaluationFailure, Any], begun: Long): Breaker.Went =
    answer match {
      // The policies that were asked before have spent the ask's time.
      case Left(EvaluationFailure(_, Reason.EvaluationDeadline))
          if !AskBudget.isSpentSince(begun) =>
        Breaker.Unasked
      case Left(EvaluationFailure(_, Reason.EvaluationDeadline | Reason.EvaluationTooLarge)) =>
        Breaker.Failed
      case _ => Breaker.Succeeded
    }
}

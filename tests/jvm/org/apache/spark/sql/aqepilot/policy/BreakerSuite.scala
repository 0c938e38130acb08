package org.apache.spark.sql.aqepilot.policy

import org.apache.spark.sql.aqepilot.policy.sql.AskBudget
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{DataType, StringType}
import org.scalatest.funsuite.AnyFunSuite

class BreakerSuite extends AnyFunSuite {

  private class Clock {
    var now = 0L
    val breaker = new Breaker(failures = 3, openNanos = 100, () => now)

    def fail(times: Int): Seq[Boolean] = Seq.fill(times) {
      assert(breaker.admits())
      breaker.failed()
    }
  }

  test(
    "it opens after so many failures in a row, and a success between them starts the count anew"
  ) {
    val clock = new Clock
    assert(clock.fail(2) === Seq(false, false))
    clock.breaker.succeeded()
    assert(clock.fail(3) === Seq(false, false, true))
    assert(!clock.breaker.admits() && clock.breaker.openFor === Some(100L))
  }

  test("after its time one is let through: a success closes it") {
    val clock = new Clock
    clock.fail(3)
    clock.now = 99
    assert(!clock.breaker.admits())
    clock.now = 100
    assert(clock.breaker.openFor === None)
    assert(clock.breaker.admits() && !clock.breaker.admits())
    clock.breaker.succeeded()
    assert(clock.breaker.admits() && clock.breaker.admits())
  }

  test("each further failure doubles its time, up to 16 times") {
    val clock = new Clock
    clock.fail(3)
    val waits = (1 to 6).map { _ =>
      val wait = clock.breaker.openFor.get
      clock.now += wait
      assert(clock.breaker.admits())
      assert(clock.breaker.failed())
      wait
    }
    assert(waits === Seq(100, 200, 400, 800, 1600, 1600))
  }

  test("one that was let through and never asked leaves the place to the next") {
    val clock = new Clock
    clock.fail(3)
    clock.now = 100
    assert(clock.breaker.admits())
    clock.breaker.unasked()
    assert(clock.breaker.admits())
  }

  /** Takes so much processor time, and has failed where the ask's time is up then. */
  private class Burning(millis: Long) extends CompiledPolicy {
    override def text: String = ""
    override def answer: DataType = StringType
    override def code: Option[String] = None
    override def eval(facts: InternalRow): Either[EvaluationFailure, Any] = {
      val until = AskBudget.now() + millis * 1000 * 1000
      while (AskBudget.now() < until) {}
      if (AskBudget.now() <= AskBudget.end()) Right(null)
      else Left(EvaluationFailure("", Reason.EvaluationDeadline))
    }
  }

  private def ask(policies: CompiledPolicy*) =
    AskBudget.within(200L * 1000 * 1000)(policies.map(_.eval(InternalRow.empty)).last)

  private def isOpen(answer: Either[EvaluationFailure, Any]) =
    answer.left.exists(_.reason == Reason.EvaluationBreakerOpen)

  test("who comes to an ask whose time another has spent is not blamed for it") {
    val late = new BoundedPolicy(new Burning(1), new Breaker(2, 1L << 60))
    (1 to 3).foreach { _ =>
      assert(ask(new Burning(220), late).left.exists(_.reason == Reason.EvaluationDeadline))
    }
    assert(!isOpen(ask(late)))
  }

  test("who spends an ask's time by itself is left alone after a while") {
    val slow = new BoundedPolicy(new Burning(220), new Breaker(2, 1L << 60))
    (1 to 2).foreach(_ => assert(!isOpen(ask(slow))))
    assert(isOpen(ask(slow)))
  }
}

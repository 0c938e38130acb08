package org.apache.spark.sql.aqepilot.policy.sql

import java.util.concurrent.CountDownLatch

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.scalatest.concurrent.Eventually._
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

class CompileThreadSuite extends AnyFunSuite {

  private val done: CompiledCache.Outcome = Left(PolicyError("DONE", "", None, None, Nil))

  private def code(outcome: CompiledCache.Outcome) = outcome.left.map(_.code)

  test("texts that compile for ever take a few threads and no more, and give them back") {
    val end = new CountDownLatch(1)
    def stuck = CompileThread.run(
      {
        while (end.getCount > 0)
          try end.await()
          catch { case _: InterruptedException => }
        done
      },
      timeoutSeconds = 1
    )
    try {
      (1 to CompileThread.MaxThreads).foreach { _ =>
        assert(stuck.swap.exists(_.message.contains("took more than 1 seconds")))
      }
      assert(code(stuck) == Left(PolicyError.CompilerBusy))
      val again = System.nanoTime
      assert(code(stuck) == Left(PolicyError.CompilerBusy))
      assert(System.nanoTime - again < 1e9) // nobody waits while it is known to be busy
    } finally end.countDown()
    def isFree() = eventually(timeout(60.seconds)) {
      assert(code(CompileThread.run(done)) == code(done))
    }
    isFree()
    def spins = {
      while (!Thread.currentThread().isInterrupted) ()
      done
    }
    val spent = CompileThread.run(spins, cpuSeconds = 1)
    assert(spent.swap.exists(_.message.contains("took more than 1 seconds")))
    isFree()
  }
}

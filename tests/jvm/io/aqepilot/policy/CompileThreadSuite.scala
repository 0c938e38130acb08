package io.aqepilot.policy

import java.util.concurrent.CountDownLatch

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
      assert(stuck.swap.exists(_.message.contains("other texts")))
    } finally end.countDown()
    eventually(timeout(10.seconds)) {
      assert(code(CompileThread.run(done, timeoutSeconds = 1)) == code(done))
    }
  }
}

package io.aqepilot.policy

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
}

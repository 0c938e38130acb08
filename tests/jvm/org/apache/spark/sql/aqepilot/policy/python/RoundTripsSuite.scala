package org.apache.spark.sql.aqepilot.policy.python

import org.scalatest.funsuite.AnyFunSuite

class RoundTripsSuite extends AnyFunSuite {

  test("percentiles are of the newest, in milliseconds") {
    val times = new RoundTrips(100)
    assert(times.percentile(50) === None && times.answers === 0)
    (1 to 50).foreach(_ => times.add(1000000000L))
    (1 to 100).foreach(n => times.add(n * 1000000L))
    assert(times.answers === 150)
    assert(times.percentile(50) === Some(50.0))
    assert(times.percentile(99) === Some(99.0) && times.percentile(100) === Some(100.0))
  }

  test("one answer is every percentile") {
    val times = new RoundTrips(100)
    times.add(2000000L)
    assert(Seq(1, 50, 99).flatMap(times.percentile(_)) === Seq(2.0, 2.0, 2.0))
  }
}

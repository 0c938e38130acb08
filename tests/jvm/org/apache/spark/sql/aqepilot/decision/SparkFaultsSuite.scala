package org.apache.spark.sql.aqepilot.decision

import org.apache.spark.sql.aqepilot.plans.joins.FaultShapes
import org.scalatest.funsuite.AnyFunSuite

class SparkFaultsSuite extends AnyFunSuite {

  private def in(version: String) = SparkFaults.in(version).map(_.jira).toSet

  test("a release has the faults that an earlier one of its minor has and that it does not mend") {
    assert(in("3.5.0")("SPARK-46037"))
    assert(in("3.5.2")("SPARK-46037"))
    assert(!in("3.5.3")("SPARK-46037"))
    assert(in("3.5.6")("SPARK-52873") && !in("3.5.7")("SPARK-52873"))
    assert(in("4.0.0")("SPARK-52873") && !in("4.0.1")("SPARK-52873"))
    assert(!in("4.1.0")("SPARK-52873"))
    assert(!in("3.4.1")("SPARK-46037"))
    assert(in("4.3.0").isEmpty)
  }

  test("a vendor's version is the release that it was made of") {
    assert(in("3.5.0-amzn-1") === in("3.5.0"))
    assert(in("3.5.2.7.1.9.0-387") === in("3.5.2"))
    assert(in("3.5.3-SNAPSHOT") === in("3.5.3"))
    assert(in("4.0") === in("4.0.0"))
    assert(in("").isEmpty && in("main").isEmpty)
  }

  test("each row names a shape that there is, and points and decisions that there are") {
    val words = Set("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "SHUFFLE_REPLICATE_NL")
    SparkFaults.all.foreach { fault =>
      assert(FaultShapes.all.contains(fault.shape), fault.jira)
      assert(fault.jira.matches("SPARK-[0-9]+") && fault.title.nonEmpty)
      assert(
        fault.decisions.nonEmpty && fault.decisions.keySet.subsetOf(DecisionPoints.names.toSet)
      )
      fault.decisions.values.flatten.foreach { d =>
        val known = words ++ Set(SparkFault.Any, SparkFault.OtherDistribution)
        assert(known(d.stripSuffix(" LEFT").stripSuffix(" RIGHT")), fault.jira)
      }
      assert(fault.releases.nonEmpty)
      fault.releases.foreach(r => assert(r.fixed.forall(f => f > r.from && f.isSameMinor(r.from))))
    }
    assert(SparkFaults.all.map(_.jira).distinct.size === SparkFaults.all.size)
    assert(FaultShapes.all.keySet === SparkFaults.all.map(_.shape).toSet)
  }
}

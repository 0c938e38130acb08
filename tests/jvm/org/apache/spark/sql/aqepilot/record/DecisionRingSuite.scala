package org.apache.spark.sql.aqepilot.record

import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

class DecisionRingSuite extends AnyFunSuite {

  private def decision(id: Long, factsId: String = "f", facts: Option[String] = None) =
    AqePilotDecision(
      1,
      0,
      id,
      "s",
      Some(1),
      None,
      "p",
      Some(1),
      Some("left"),
      None,
      factsId,
      facts,
      None,
      None,
      Some("enforce"),
      None,
      None,
      None,
      applied = false,
      "NULL_ANSWER",
      None,
      1.0,
      Some("join 1, left side")
    )

  test("stays within its bytes: the oldest go, and are counted") {
    val ring = new DecisionRing(100 * 1024)
    val evicted = (1 to 1000).map(i => ring.add(decision(i, s"f$i", Some("x" * 1000)))).sum
    assert(ring.bytes <= 100 * 1024)
    val kept = ring.decisions.map(_._1.decisionId)
    assert(kept.size > 20 && kept.size < 100)
    assert(kept == (1001L - kept.size to 1000L))
    assert(evicted == 1000 - kept.size)
  }

  test("a decision larger than the ring leaves it empty, with nothing counted as held") {
    val ring = new DecisionRing(1024)
    assert(ring.add(decision(1, "f", Some("x" * 10000))) == 1)
    assert(ring.decisions.isEmpty && ring.bytes == 0)
  }

  test("facts that decisions share are held once, are in each, and outlive the first") {
    val ring = new DecisionRing(50000)
    ring.add(decision(1, "f", Some("x" * 20000)))
    ring.add(decision(2, "f"))
    ring.add(decision(3, "f", Some("x" * 20000)))
    assert(ring.bytes < 25000)
    assert(ring.decisions.map(_._1.facts.map(_.length)) == Seq.fill(3)(Some(20000)))
    (4 to 40).foreach(i => ring.add(decision(i, s"other$i", Some("y" * 400))))
    assert(!ring.decisions.exists(_._1.decisionId == 1))
    assert(ring.decisions.filter(_._1.factsId == "f").forall(_._1.facts.isDefined))
    (41 to 200).foreach(i => ring.add(decision(i, s"other$i", Some("y" * 400))))
    assert(!ring.decisions.exists(_._1.factsId == "f") && ring.bytes <= 50000)
  }

  test("fates reach their decisions, count as bytes, and go with them") {
    val ring = new DecisionRing(1 << 20)
    (1 to 3).foreach(i => ring.add(decision(i)))
    val before = ring.bytes
    ring.settle(Seq(
      AqePilotFate(2, "adopted", Some("SortMergeJoin")),
      AqePilotFate(99, "adopted", None)
    ))
    assert(ring.bytes > before)
    assert(ring.decisions.map(_._2.map(_.fate)) == Seq(None, Some("adopted"), None))
  }
}

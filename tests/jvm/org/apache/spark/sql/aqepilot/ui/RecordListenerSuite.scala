package org.apache.spark.sql.aqepilot.ui

import java.nio.file.Files

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{SparkListenerApplicationEnd, SparkListenerEnvironmentUpdate}
import org.apache.spark.sql.aqepilot.reasons.Fate
import org.apache.spark.status.KVUtils
import org.apache.spark.util.kvstore.{InMemoryStore, KVStore}
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

class RecordListenerSuite extends AnyFunSuite {
  import MadeRecord._

  private def listener(store: KVStore, queries: Int = 1000, bytes: Long = 1L << 24) =
    new RecordListener(store, queries, bytes, () => ())

  private def refused(e: AqePilotDecision) =
    e.copy(applied = false, reason = "GUARD_BROADCAST_BYTES")

  test("a query has its decisions, what they came to, and the facts that they share") {
    val record = new StoredRecord(
      stored(
        decision(1, facts = Some("{}")),
        decision(2),
        refused(decision(3)),
        decision(4).copy(applied = false, reason = "SHADOW"),
        closed(
          1,
          Seq(AqePilotFate(1, Fate.Adopted.code, Some("ran")), AqePilotFate(2, "gone", None))
        )
      )
    )
    val query = record.query(1).get
    assert(
      (query.decisions, query.applied, query.adopted, query.refused, query.shadow) ==
        ((4, 2, 1, 1, 1))
    )
    assert(query.closed.get.succeeded && query.closed.get.fates.isEmpty)
    assert(record.decisions(1).map(_.id) == Seq(1, 2, 3, 4))
    assert(record.decisions(1).map(_.fate.map(_.fate)).take(2) == Seq(
      Some("adopted"),
      Some("gone")
    ))
    assert(record.decisions(1).forall(record.facts(_).contains("{}")))
  }

  test("a query that runs a plan claims the decisions that were made for it") {
    val record = new StoredRecord(
      stored(
        decision(1, None, Some("{}")),
        decision(2, None),
        closed(7, Seq(AqePilotFate(1, Fate.Adopted.code, None)), Seq(1))
      )
    )
    assert(record.decisions(7).map(_.id) == Seq(1))
    assert(record.facts(record.decisions(7).head).contains("{}"))
    assert(record.decisions(KeptQuery.NotRun).map(_.id) == Seq(2))
    assert(record.query(KeptQuery.NotRun).map(_.decisions).contains(1))
    assert(record.query(7).map(q => (q.decisions, q.adopted)).contains((1, 1)))
  }

  test("the oldest queries make room, with all that is theirs, and are counted") {
    val store = new InMemoryStore
    val few = listener(store, queries = 10)
    (1L to 100L).foreach(i => few.onOtherEvent(decision(i, Some(i), Some("{}"))))
    val record = new StoredRecord(store)
    assert(record.queries.map(_.id).toSet == (91L to 100L).toSet)
    assert(store.count(classOf[KeptDecision]) == 10 && store.count(classOf[KeptFacts]) == 10)
    assert(record.queriesLeftOut == 90)
  }

  test("the bytes are bounded, those of a single query too") {
    val store = new InMemoryStore
    val small = listener(store, bytes = 100000)
    val facts = "x" * 10000
    (1L to 100L).foreach { i =>
      small.onOtherEvent(decision(i, Some(i / 60), Some(facts)).copy(factsId = s"f$i"))
    }
    val record = new StoredRecord(store)
    assert(store.count(classOf[KeptFacts]) <= 10)
    val last = record.query(record.queries.map(_.id).max).get
    assert(last.decisions + last.leftOut >= 1)
    assert(record.queries.map(_.leftOut).sum > 0)
  }

  test("an application that was submitted without the tab is not kept") {
    val store = new InMemoryStore
    val off = listener(store)
    off.onEnvironmentUpdate(
      SparkListenerEnvironmentUpdate(Map("Spark Properties" -> Seq("spark.aqepilot.ui" -> "false")))
    )
    off.onOtherEvent(decision(1))
    assert(!new StoredRecord(store).nonEmpty)
  }

  test("a log without our events leaves nothing in the store") {
    val store = new InMemoryStore
    listener(store).onOtherEvent(SparkListenerApplicationEnd(1))
    assert(!new StoredRecord(store).nonEmpty)
  }

  test("the newest state of policies, units and the control file is kept, in bounds") {
    val store = new InMemoryStore
    val kept = listener(store)
    (1 to 1500).foreach { i =>
      kept.onOtherEvent(loaded().copy(sessionId = s"s$i", time = i.toLong))
      kept.onOtherEvent(unit.copy(unit = s"u$i", time = i.toLong))
      kept.onOtherEvent(control.copy(version = Some(i.toLong)))
    }
    kept.onOtherEvent(unit.copy(unit = "u1500", what = "stopped", time = 2000))
    val record = new StoredRecord(store)
    assert(record.policies.size == 1000 && record.policies.head.sessionId == "s1500")
    assert(record.units.size == 1000 && record.units.head.what == "stopped")
    assert(record.control.size == 100 && record.control.head.version.contains(1500L))
  }

  test("a history server's store on disk gives back what was kept") {
    val folder = Files.createTempDirectory("aqepilot-ui")
    val store = KVUtils.createKVStore(Some(folder.toFile), false, new SparkConf(false))
    try {
      val kept = listener(store, queries = 2)
      val events = Seq(
        decision(1, Some(1), Some("{}")),
        decision(2, Some(2), Some("{}")),
        decision(3, Some(3), Some("{}")),
        decision(4, None),
        loaded(),
        unit,
        control
      )
      events.foreach(kept.onOtherEvent)
      kept.onOtherEvent(closed(3, Seq(AqePilotFate(3, "adopted", Some("ran"))), Seq(4)))
      val record = new StoredRecord(store)
      assert(record.queries.map(_.id).toSet == Set(3L, KeptQuery.NotRun))
      assert(record.decisions(3).map(_.decision) ==
        Seq(decision(3, Some(3)), decision(4, Some(3))))
      assert(record.decisions(3).head.fate.contains(AqePilotFate(3, "adopted", Some("ran"))))
      assert(record.query(3).get.closed.contains(closed(3)))
      assert(record.facts(record.decisions(3).head).contains("{}"))
      assert(record.policies == Seq(loaded()) && record.units == Seq(unit))
      assert(record.control == Seq(control) && record.queriesLeftOut == 2)
    } finally store.close()
  }
}

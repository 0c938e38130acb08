package org.apache.spark.sql.aqepilot.record

import java.nio.file.Files
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{CountDownLatch, TimeUnit}

import com.codahale.metrics.MetricRegistry
import org.apache.spark.sql.aqepilot.decision.Decided
import org.apache.spark.sql.execution.SparkPlan

import io.aqepilot.log.AqePilotFate

class DecisionLogSuite extends RecordingSuite {
  test("a query with decisions is closed with its fates and its time") {
    val log = start()
    DecisionLog.fates = { (plan: SparkPlan, decisions: Seq[Decided]) =>
      assert(plan.toString.contains("isFinalPlan=true") && decisions.forall(_.event.facts.isEmpty))
      decisions.map(d => AqePilotFate(d.event.decisionId, "adopted", Some("SortMergeJoin")))
    }
    decidingAtPlanning(log)(shuffled().collect())
    val query = closed
    assert(query.size == 1)
    val q = query.head
    assert(q.succeeded && q.error.isEmpty && q.sessionId == "s" && q.fingerprint.contains("f" * 64))
    assert(q.droppedEvents == 0 && q.planningMillis.exists(_ > 0))
    assert(q.fates.nonEmpty && q.fates.map(_.decisionId) == decided.map(_.decisionId))
    assert(decided.forall(_.executionId.contains(q.executionId)))
    assert(log.decisions(None).forall(_._2.exists(_.fate == "adopted")))
  }

  test("the live view has the fates of a query the moment it ended") {
    val log = start()
    DecisionLog.fates = { (_, decisions) =>
      Thread.sleep(300)
      decisions.map(d => AqePilotFate(d.event.decisionId, "adopted", None))
    }
    decidingAtPlanning(log)(shuffled().collect())
    val live = log.decisions(Some("s"))
    assert(live.nonEmpty && live.forall(_._2.isDefined))
    assert(log.decisions(Some("another")).isEmpty)
  }

  test("a query without decisions is not closed by us") {
    val log = start()
    shuffled().collect()
    assert(closed.isEmpty && log.counters.toMap.apply("errors") == 0)
  }

  test("a query that fails is closed with its error and no fates") {
    val log = start("spark.sql.redaction.string.regex" -> "secret[0-9]+")
    DecisionLog.fates = (
        (_, ds) =>
          ds.map(d => AqePilotFate(d.event.decisionId, "adopted", None))
    )
    spark.udf.register("boom", (_: Long) => { sys.error("secret123"); 1L })
    decidingAtPlanning(log) {
      intercept[Exception](
        spark.range(10).selectExpr("boom(id) AS x").groupBy("x").count().collect()
      )
    }
    val q = closed.head
    assert(!q.succeeded && q.fates.isEmpty)
    assert(q.error.exists(e => e.nonEmpty && !e.contains("secret123") && e.length <= 4000))
    assert(log.decisions(None).forall(_._2.isEmpty))
  }

  test("a reader of fates that fails, by a link error too, costs the fates only") {
    val log = start()
    for (fault <- Seq(new IllegalStateException("x"), new NoSuchMethodError("y"))) {
      DecisionLog.fates = ((_, _) => throw fault)
      decidingAtPlanning(log)(assert(shuffled().collect().length == 100))
    }
    assert(closed.size == 2 && closed.forall(q => q.succeeded && q.fates.isEmpty))
    assert(log.counters.toMap.apply("errors.fates") == 2)
  }

  test("facts are in the event log once per execution, and in every decision of the live view") {
    val log = start()
    val written = new AtomicInteger
    for (execution <- Seq(Some(1L), Some(2L), None); i <- 1 to 3) {
      val decision = this.decision(i, execution).copy(factsId = "same")
      log.decided(
        Seq(Decided(decision)),
        { (_, _) =>
          written.incrementAndGet()
          Some(WrittenFacts("c", "{\"conf\":{}}", "{\"a\":1}"))
        }
      )
    }
    assert(decided.map(_.facts.isDefined) == Seq.fill(3)(Seq(true, false, false)).flatten)
    assert(log.decisions(None).forall(_._1.facts.contains("{\"conf\":{},\"a\":1}")))
    assert(written.get == 3, "facts were written as JSON that nobody keeps")
  }

  test("facts that every point has are in the event log once per execution and values of them") {
    val log = start()
    for (execution <- Seq(Some(1L), None); (id, i) <- Seq("x", "x", "y", "x").zipWithIndex) {
      val own = s"""{"a":$i}"""
      log.decided(
        Seq(Decided(decision(i, execution).copy(factsId = s"f$i"))),
        (_, _) => Some(WrittenFacts(id, s"""{"conf":"$id"}""", own))
      )
    }
    val events = decided
    assert(events.map(_.facts) == Seq.fill(2)((0 to 3).map(i => Some(s"""{"a":$i}"""))).flatten)
    assert(events.map(_.commonFactsId.get) == Seq.fill(2)(Seq("x", "x", "y", "x")).flatten)
    assert(
      events.map(_.commonFacts.isDefined) == Seq.fill(2)(Seq(true, false, true, false)).flatten
    )
    assert(
      log.decisions(None).map(_._1.facts.get).take(3) ==
        Seq("""{"conf":"x","a":0}""", """{"conf":"x","a":1}""", """{"conf":"y","a":2}""")
    )
  }

  test("decisions count by point and reason, in Spark's metrics system as here") {
    val log = start()
    (1 to 3).foreach(i => log.decide(decision(i, None)))
    log.decide(decision(4, None).copy(reason = "USER_HINT"))
    log.failed("p")
    val counters = log.counters.toMap
    assert(counters("decisions.p.APPLIED") == 3 && counters("decisions.p.USER_HINT") == 1)
    assert(counters("errors") == 1 && counters("errors.p") == 1 && counters("dropped.ring") == 0)
    val system = sc.env.metricsSystem
    assert(system.getSourcesByName("aqepilot").size == 1)
    val field = system.getClass.getDeclaredFields.find(_.getType == classOf[MetricRegistry]).get
    field.setAccessible(true)
    val sinks = field.get(system).asInstanceOf[MetricRegistry]
    val name = s"${sc.applicationId}.driver.aqepilot"
    assert(sinks.counter(s"$name.decisions.p.APPLIED").getCount == 3)
    assert(sinks.getHistograms.get(s"$name.asked_us").getSnapshot.getMax == 10)
  }

  test("a SparkContext has one log, the next one has its own") {
    val first = start()
    assert((DecisionLog.of(sc) eq first) && DecisionLog.getActive.contains(first))
    first.decide(decision(1, None))
    spark.stop()
    assert(DecisionLog.getActive.isEmpty)
    assert(first.decisions(None).size == 1)
    first.decide(decision(2, None))
    val second = start()
    assert((second ne first) && second.decisions(None).isEmpty)
  }

  test("the ring's bytes are a setting, a bad one is the default, evictions are counted") {
    val log = start("spark.aqepilot.decisions.ring_bytes" -> "20k")
    (1 to 200).foreach(i => log.decide(decision(i, None)))
    val kept = log.decisions(None).size
    assert(kept > 5 && kept < 100 && log.counters.toMap.apply("dropped.ring") == 200 - kept)
    spark.stop()
    val other = start("spark.aqepilot.decisions.ring_bytes" -> "lots")
    (1 to 200).foreach(i => other.decide(decision(i, None)))
    assert(
      other.decisions(None).size == 200 && other.counters.toMap.apply("errors.ring_bytes") == 1
    )
  }

  test("events that a full queue drops are counted, and the query says so") {
    val log = start("spark.scheduler.listenerbus.eventqueue.capacity" -> "300")
    val go = new CountDownLatch(1)
    val stuck = new CountDownLatch(1)
    DecisionLog.fates = { (_, _) => stuck.countDown(); go.await(60, TimeUnit.SECONDS); Nil }
    decidingAtPlanning(log)(spark.range(1, 5, 1, 1).groupBy().count().collect())
    assert(stuck.await(20, TimeUnit.SECONDS))
    (1 to 1000).foreach(i => log.decide(decision(i, None)))
    val waited = System.nanoTime()
    log.decisions(None)
    assert(System.nanoTime() - waited < 40L * 1000 * 1000 * 1000)
    go.countDown()
    sc.listenerBus.waitUntilEmpty()
    assert(log.counters.toMap.apply("dropped.queue") > 500)
    assert(closed.isEmpty || closed.forall(_.droppedEvents > 500))
  }

  test("executions that never end are forgotten, the oldest first, and counted") {
    val log = start()
    (1 to QueryRecorder.MaxQueries + 50).foreach(i => log.decide(decision(i, Some(1000000L + i))))
    assert(log.counters.toMap.apply("dropped.queries") == 50)
    val many = QueryRecorder.MaxDecisions
    (1 to many).foreach(i => log.decide(decision(i, Some(5000000L))))
    assert(log.counters.toMap.apply("dropped.queries") == 50 + QueryRecorder.MaxQueries - 1 + 1)
  }

  test("Spark's event log holds the record; what waits for the queue is not in it") {
    val folder = Files.createTempDirectory("aqepilot-events")
    val log = start(
      "spark.eventLog.enabled" -> "true",
      "spark.eventLog.dir" -> folder.toUri.toString,
      "spark.eventLog.rolling.enabled" -> "false",
      "spark.eventLog.compress" -> "false"
    )
    decidingAtPlanning(log)(shuffled().collect())
    log.policyLoaded(policy("sales", "NULL", None, None))
    log.decisions(None)
    spark.stop()
    val files = folder.toFile.listFiles.filter(_.isFile).filterNot(_.getName.endsWith(".crc"))
    val lines = files.map(f => new String(Files.readAllBytes(f.toPath), "UTF-8")).mkString
    for (event <- Seq("PolicyLoaded", "Decision", "QueryClosed"))
      assert(lines.indexOf(s"io.aqepilot.log.AqePilot$event") > 0, event)
    assert(!lines.contains(classOf[QueryRecorder.Barrier].getName), "a barrier was logged")
  }
}

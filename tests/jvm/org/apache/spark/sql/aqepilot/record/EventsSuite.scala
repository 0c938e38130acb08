package org.apache.spark.sql.aqepilot.record

import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.util.JsonProtocol
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.log.{
  AqePilotControl,
  AqePilotDecision,
  AqePilotFate,
  AqePilotPolicyLoaded,
  AqePilotQueryClosed,
  AqePilotSubPlan
}

/** The events as Spark's event log and history server write and read them. */
class EventsSuite extends AnyFunSuite {
  private val large = Int.MaxValue.toLong + 12345

  private def readBack(event: SparkListenerEvent): SparkListenerEvent = {
    val json = JsonProtocol.sparkEventToJsonString(event)
    assert(json.contains(s""""Event":"${event.getClass.getName}""""), json)
    JsonProtocol.sparkEventFromJson(json)
  }

  private val decision = AqePilotDecision(
    1,
    large,
    large,
    "s",
    Some(7L),
    Some("f" * 64),
    "p",
    Some(3L),
    Some("left"),
    Some("a ⋈ b"),
    "0f",
    Some("{\"a\":\"\\\"\"}"),
    Some("sales"),
    Some("0123456789ab"),
    Some("enforce"),
    Some("SHUFFLE_HASH"),
    None,
    Some("SortMergeJoin"),
    applied = true,
    "APPLIED",
    None,
    12.5,
    Some("join 1, left side")
  )

  test("a decision comes back equal, its small and large optional longs as longs") {
    for (e <- Seq(decision, decision.copy(executionId = Some(large), joinId = Some(large)))) {
      val back = readBack(e).asInstanceOf[AqePilotDecision]
      assert(back == e)
      assert(back.executionId.get + 1L > 0 && back.joinId.get + 1L > 0)
    }
  }

  test("a decision of which little is known comes back equal") {
    val e = decision.copy(
      executionId = None,
      joinId = None,
      fingerprint = None,
      side = None,
      tables = None,
      facts = None,
      policy = None,
      revision = None,
      answer = None
    )
    assert(readBack(e) == e)
  }

  test("a loaded policy comes back equal, with its line comments and newlines") {
    val e = AqePilotPolicyLoaded(
      1,
      large,
      "s",
      "sales",
      "dynamic_join_selection",
      "0123456789ab",
      "CASE -- é\n\tEND",
      Some("query.app_name LIKE 'x%'"),
      "shadow",
      "session",
      "u",
      None
    )
    assert(readBack(e) == e)
    assert(readBack(e.copy(when = None, error = Some("bad"))) == e.copy(
      when = None,
      error = Some("bad")
    ))
  }

  test("a closed query comes back equal, its fates as fates") {
    val e = AqePilotQueryClosed(
      1,
      large,
      "s",
      large,
      None,
      succeeded = true,
      None,
      Seq(
        AqePilotFate(large, "adopted", Some("SortMergeJoin")),
        AqePilotFate(2, "no_change", None)
      ),
      0
    )
    val back = readBack(e).asInstanceOf[AqePilotQueryClosed]
    assert(back == e)
    assert(back.fates.map(_.decisionId) == Seq(large, 2L))
    assert(readBack(e.copy(fates = Nil, error = Some("x"))) == e.copy(
      fates = Nil,
      error = Some("x")
    ))
    val more = e.copy(
      jobSource = Some("AIRFLOW"),
      runSource = Some("SETTING"),
      attemptSource = Some("AIRFLOW_CTX_TRY_NUMBER"),
      controlVersion = Some(7L),
      controlAgeMillis = Some(20L),
      planningMillis = Some(5L),
      askedMicros = Some(1.5)
    )
    val backToo = readBack(more).asInstanceOf[AqePilotQueryClosed]
    assert(backToo == more)
    val parts = Seq(
      AqePilotSubPlan(
        "SHUFFLE",
        "0" * 16,
        "f" * 16,
        Some(1L),
        Some(2L),
        Some(large),
        Some(4L),
        Some(5),
        Some(6L),
        Some(7L),
        Some(8L),
        Some(9L),
        Some(10L),
        Some(11L),
        Some(12L),
        Some(13L),
        Some(14)
      ),
      AqePilotSubPlan("PLAN", "1" * 16, "2" * 16, rows = Some(3L))
    )
    val measured = readBack(e.copy(subPlans = parts)).asInstanceOf[AqePilotQueryClosed].subPlans
    assert(measured === parts)
    assert(
      measured.head.partitions.get + measured.head.rows.get + measured.head.failures.get === 21L
    )
    assert(
      JsonProtocol.sparkEventToJsonString(e.copy(subPlans = parts.drop(1))).contains(
        """"subPlans":[{"kind":"PLAN","same":"1111111111111111","shape":"2222222222222222","rows":3}]"""
      )
    )
    val longs = Seq(
      backToo.controlVersion,
      backToo.controlAgeMillis,
      backToo.planningMillis
    )
    assert(longs.flatten.sum == 32L)
  }

  test("what a control file says comes back equal") {
    val e = AqePilotControl(1, large, "p", Some(3L), Seq("r"), None, Some(20L))
    val back = readBack(e).asInstanceOf[AqePilotControl]
    assert(back == e)
    assert(back.ageMillis.get + back.version.get == 23L)
  }
}

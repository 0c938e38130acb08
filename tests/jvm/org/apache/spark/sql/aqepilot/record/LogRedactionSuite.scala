package org.apache.spark.sql.aqepilot.record

import java.util.concurrent.ConcurrentLinkedQueue

import org.apache.spark.sql.aqepilot.decision.Decided

import io.aqepilot.log.{AqePilotControl, AqePilotExperiment, AqePilotPolicyLoaded}

class LogRedactionSuite extends RecordingSuite {
  test("texts are redacted before they are posted or kept") {
    val log = start("spark.sql.redaction.string.regex" -> "secret[0-9]+")
    log.decide(decision(1, None).copy(
      tables = Some("t_secret1"),
      detail = Some("x secret2"),
      answer = Some("secret3")
    ))
    log.policyLoaded(policy(
      "sales",
      "CASE WHEN 'secret4' THEN 1 END",
      Some("secret5"),
      Some("secret6")
    ))
    val posted = decided.mkString + events(classOf[AqePilotPolicyLoaded]).mkString
    assert(!posted.contains("secret") && posted.contains("*********(redacted)"))
    assert(!log.decisions(None).mkString.contains("secret"))
  }

  test("a session's own pattern hides more, and shows nothing that the submitted one hides") {
    val log = start("spark.redaction.string.regex" -> "secret[0-9]+")
    spark.conf.set("spark.sql.redaction.string.regex", "own[0-9]+")
    log.decide(decision(1, None).copy(tables = Some("secret1 own2")))
    assert(decided.map(_.tables.get) == Seq("*********(redacted) *********(redacted)"))
  }

  test("fates are read from decisions as they were made, whatever texts are redacted") {
    val log = start("spark.sql.redaction.string.regex" -> "[A-Z_]+")
    val read = new ConcurrentLinkedQueue[Decided]
    DecisionLog.fates = { (_, decisions) => decisions.foreach(read.add); Nil }
    decidingAtPlanning(log)(shuffled().collect())
    assert(decided.nonEmpty && decided.forall(!_.answer.get.contains("SHUFFLE")))
    assert(read.size == decided.size)
    read.forEach(d => assert(d.event.answer.contains("SHUFFLE_HASH")))
  }

  test("a policy whose key or text matches Spark's pattern of secret settings is hidden") {
    val log = start()
    log.policyLoaded(policy("sales", "side.max_bytes < 64", None, None))
    log.policyLoaded(policy("my_token", "side.max_bytes < 64", Some("w"), Some("near max_bytes")))
    log.policyLoaded(policy("sales", "password = 'x'", None, Some("near = 'x'")))
    val loaded = events(classOf[AqePilotPolicyLoaded])
    val (byKey, byText) = (loaded(1), loaded(2))
    assert(loaded.head.text == "side.max_bytes < 64")
    val hidden = "*********(redacted)"
    assert(Seq(
      byKey.text,
      byKey.when.get,
      byKey.error.get,
      byText.text,
      byText.error.get
    ).forall(_ == hidden))
  }

  test("what users call their jobs, and what is said of limits and arms, is redacted, too") {
    val log = start("spark.sql.redaction.string.regex" -> "secret[0-9]+")
    log.policyLoaded(policy("sales", "NULL", None, None).copy(limit = Some("job secret1")))
    log.control(AqePilotControl(
      1,
      0,
      "secret2.toml",
      None,
      Seq("off for secret3"),
      Some("secret4")
    ))
    log.experiment(
      AqePilotExperiment(
        1,
        0,
        "faster",
        "job_run",
        "secret5|1",
        "a",
        "a:50,b:50",
        "wall_ms",
        "exposed",
        Some("secret6"),
        None,
        "secret5",
        "secret7",
        None
      )
    )
    spark.conf.set("spark.aqepilot.job", "secret8")
    spark.conf.set("spark.aqepilot.run", "secret9")
    decidingAtPlanning(log)(shuffled().collect())
    val posted = Seq(
      events(classOf[AqePilotPolicyLoaded]),
      events(classOf[AqePilotControl]),
      events(classOf[AqePilotExperiment]),
      closed
    )
    assert(posted.forall(_.size == 1))
    assert(!posted.mkString.contains("secret"), posted)
    assert(closed.head.job.exists(_.contains("redacted")), closed)
  }
}

package org.apache.spark.sql.aqepilot.run

import java.io.FileNotFoundException
import java.util.concurrent.CountDownLatch

import org.apache.spark.sql.aqepilot.decision.DecisionPoint
import org.apache.spark.sql.aqepilot.points.join_selection.JoinSelectionPoint
import org.apache.spark.sql.aqepilot.points.skew_join.SkewJoinPoint
import org.apache.spark.sql.aqepilot.policy.sql.PolicyCompiler
import org.apache.spark.sql.aqepilot.policy.{NamedPolicy, PolicySet}
import org.apache.spark.sql.aqepilot.settings.Mode
import org.scalatest.funsuite.AnyFunSuite

class ControlSuite extends AnyFunSuite {

  private def policy(name: String, point: DecisionPoint[_], mode: Mode = Mode.Enforce) =
    NamedPolicy(
      name,
      point,
      "NULL",
      None,
      mode,
      s"revision of $name",
      "submitted",
      PolicyCompiler.compile("NULL", point.facts, point.answer),
      None
    )

  private val sales = policy("sales", SkewJoinPoint)
  private val salesToo = policy("sales", JoinSelectionPoint)
  private val shadow = policy("new", SkewJoinPoint, Mode.Shadow)
  private val set = new PolicySet(Seq(sales, salesToo, shadow), Nil)

  private def text(rules: String, version: Int = 1) =
    s"""{"format": 1, "version": $version, "rules": [$rules], "history": [{"any": "thing"}]}"""

  private def rules(text: String) = ControlFile.parse(text).fold(fail(_), _.rules)

  /** The modes of sales at both points and of the policy in shadow, in a query. */
  private def modes(
      rule: String,
      fingerprint: Option[String] = None,
      spark: String = "3.5.9"
  ): Seq[String] = {
    val limited = new Limits(rules(text(rule)), spark).of(set, Set("daily"))
    Seq(SkewJoinPoint -> "sales", JoinSelectionPoint -> "sales", SkewJoinPoint -> "new").map {
      case (point, name) =>
        limited.at(point, fingerprint).find(_.name == name).fold("off")(_.mode.name)
    }
  }

  test("a rule is for what all its selectors are for, and lowers modes only") {
    val on = Seq("enforce", "enforce", "shadow")
    assert(modes("") === on)
    assert(modes("""{"mode": "off"}""") === Seq("off", "off", "off"))
    assert(modes("""{"mode": "shadow"}""") === Seq("shadow", "shadow", "shadow"))
    assert(modes("""{"mode": "enforce"}""") === on)
    assert(modes("""{"mode": "off", "policy": "sales"}""") === Seq("off", "off", "shadow"))
    assert(modes("""{"mode": "off", "point": "skew_join"}""") === Seq("off", "enforce", "off"))
    val one = """{"mode": "off", "policy": "sales", "point": "skew_join"}"""
    assert(modes(one) === Seq("off", "enforce", "shadow"))
    assert(modes("""{"mode": "off", "revision": "revision of new"}""") === on.updated(2, "off"))
    assert(modes("""{"mode": "off", "job": "daily"}""") === Seq("off", "off", "off"))
    assert(modes("""{"mode": "off", "job": "weekly"}""") === on)
    Seq("3.5", "3.5.9", "3").foreach { version =>
      assert(modes(s"""{"mode": "off", "spark": "$version"}""") === Seq("off", "off", "off"))
    }
    Seq("4.3", "3.5.10", "3.5.90", "3.").foreach { version =>
      assert(modes(s"""{"mode": "off", "spark": "$version"}""") === on, version)
    }
    Seq(
      "3.5.9" -> "off",
      "3.5.9-vendor" -> "off",
      "3.5.9-vendor-1" -> "off",
      "3.5.9-ven" -> "enforce"
    )
      .foreach { case (version, mode) =>
        val rule = s"""{"mode": "off", "spark": "$version"}"""
        assert(modes(rule, spark = "3.5.9-vendor-1").head === mode, version)
      }
    val two = """{"mode": "shadow"}, {"mode": "off", "policy": "new"}"""
    assert(modes(two) === Seq("shadow", "shadow", "off"))
  }

  test("a rule for a fingerprint is for that query, and for those whose fingerprint is not known") {
    val rule = """{"mode": "off", "policy": "sales", "fingerprint": "f1"}"""
    assert(modes(rule, Some("f1")) === Seq("off", "off", "shadow"))
    assert(modes(rule, Some("f2")) === Seq("enforce", "enforce", "shadow"))
    assert(modes(rule, None) === Seq("off", "off", "shadow"))
  }

  test("a policy whose mode is lowered says why, one that is not does not") {
    val limited =
      new Limits(
        rules(text("""{"id": "7", "mode": "shadow", "reason": "slow"}""")),
        ""
      ).of(set, Set())
    assert(limited.policies.map(_.limit) ===
      Seq(Some("control rule 7: shadow: slow"), Some("control rule 7: shadow: slow"), None))
    assert(new Limits(Nil, "").of(set, Set()) eq set)
  }

  test("what is not known in a rule makes it hold for more") {
    val all = Seq("off", "off", "off")
    assert(modes("""{"mode": "of"}""") === all)
    assert(modes("""{}""") === all)
    assert(modes("""{"mode": "off", "user": "ann"}""") === all)
    assert(modes("""{"mode": "off", "until": "tomorrow"}""") === all)
  }

  test("a rule ends at its time, not before where the clock is fast by some minutes") {
    val rule = rules(text("""{"mode": "off", "until": "2026-11-23T12:00:00+01:00"}""")).head
    val end = java.time.Instant.parse("2026-11-23T11:00:00Z").toEpochMilli
    assert(rule.holds(end - 1) && rule.holds(end + 9 * 60 * 1000))
    assert(!rule.holds(end + 10 * 60 * 1000))
  }

  test("what is no control file is told, not read") {
    val good = text("""{"mode": "off", "policy": "sales"}""")
    (0 until good.length).foreach(n => assert(ControlFile.parse(good.take(n)).isLeft, good.take(n)))
    Seq("[]", "1", "{}", """{"format": 2, "rules": []}""", """{"format": 1, "rules": [1]}""")
      .foreach(other => assert(ControlFile.parse(other).isLeft, other))
    assert(ControlFile.parse("{\"format\": 1}").left.toOption.exists(_.contains("rules")))
  }

  private class File(var text: () => String) {
    var reports = 0
    def control(unreachable: Mode = Mode.Shadow, refresh: Long = 1000) =
      new Control("file", () => text(), refresh, unreachable, "4.3.0", _ => reports += 1)
  }

  private def mode(control: Control) =
    control.limits.of(set, Set()).at(JoinSelectionPoint, None).headOption.fold("off")(_.mode.name)

  test("until it is read for the first time, policies may do what is set for that") {
    Seq(Mode.Off -> "off", Mode.Shadow -> "shadow", Mode.Enforce -> "enforce").foreach {
      case (unreachable, expected) =>
        val control = new File(() => throw new FileNotFoundException("gone")).control(unreachable)
        assert(mode(control) === expected)
        control.refresh()
        assert(mode(control) === expected)
        assert(control.problem.exists(_.contains("gone")))
        assert(control.version === None && control.age === None)
    }
  }

  test("the last good copy holds while the file is away, half written or too new") {
    val file = new File(() => text("""{"mode": "off", "policy": "sales"}""", version = 4))
    val control = file.control()
    control.refresh()
    assert(mode(control) === "off" && control.version === Some(4L) && control.problem === None)
    assert(file.reports === 1)
    control.refresh()
    assert(file.reports === 1)
    val good = file.text()
    Seq[() => String](
      () => throw new FileNotFoundException("gone"),
      () => throw new NoClassDefFoundError("no such file system"),
      () => good.take(30),
      () => "",
      () => good.replace("\"format\": 1", "\"format\": 2")
    ).foreach { bad =>
      file.text = bad
      control.refresh()
      assert(mode(control) === "off" && control.version === Some(4L))
      assert(control.problems.map(_.code) === Seq("CONTROL_UNREACHABLE"))
    }
    file.text = () => text("", version = 5)
    control.refresh()
    assert(mode(control) === "enforce" && control.version === Some(5L) && control.problem === None)
  }

  test("a rule of the last good copy ends at its time too") {
    val file = new File(() => text("""{"mode": "off", "until": "2020-01-01T00:00:00Z"}"""))
    val control = file.control()
    control.refresh()
    assert(mode(control) === "enforce")
  }

  test("a reading that hangs keeps nobody waiting, and is told") {
    val hangs = new CountDownLatch(1)
    val file = new File(() => text("""{"mode": "off"}"""))
    val control = file.control(refresh = -10000)
    control.refresh()
    file.text = () => { hangs.await(); "" }
    val reader = new Thread(() => control.refresh())
    reader.setDaemon(true)
    reader.start()
    Thread.sleep(20)
    assert(mode(control) === "off")
    assert(control.problem.exists(_.contains("does not answer")))
    hangs.countDown()
    reader.join()
  }

  test(
    "a rule for a job is for those that it was submitted as, and for those that it names itself"
  ) {
    val limits = new Limits(rules(text("""{"mode": "off", "job": "daily"}""")), "")
    def isOff(jobs: String*) =
      limits.of(set, jobs.toSet).at(JoinSelectionPoint, None).isEmpty
    assert(isOff("daily") && isOff("daily", "other") && !isOff("other"))
  }

  private def written(version: Int, rules: String, ids: String*) = {
    val history = ids.map(id => s"""{"id": "$id"}""").mkString(",")
    s"""{"format": 1, "version": $version, "rules": [$rules], "history": [$history]}"""
  }

  test("an old copy that a file system gives later does not replace a newer one, and is told") {
    val off = """{"mode": "off"}"""
    val file = new File(() => written(2, off, "a", "b"))
    val control = file.control()
    control.refresh()
    file.text = () => written(1, "", "a")
    control.refresh()
    assert(mode(control) === "off" && control.version === Some(2L))
    assert(control.problem.exists(_.contains("version 1")), control.problem)
    file.text = () => written(3, "", "a", "b", "c")
    control.refresh()
    assert(mode(control) === "enforce" && control.version === Some(3L) && control.problem === None)
  }

  test("a file that was made anew holds, though it counts from 1 again") {
    val file = new File(() => written(7, "", "a", "b"))
    val control = file.control()
    control.refresh()
    Seq(written(1, """{"mode": "off"}""", "z"), text("""{"mode": "off"}""")).foreach { other =>
      file.text = () => other
      control.refresh()
      assert(mode(control) === "off" && control.version === Some(1L) && control.problem === None)
    }
  }

  Seq[Throwable](new InterruptedException("why"), new OutOfMemoryError("why")).foreach { fault =>
    test(s"a reading that ends by a ${fault.getClass.getSimpleName} is followed by others") {
      val file = new File(() => throw fault)
      val control = file.control()
      Thread.currentThread().interrupt()
      control.refresh()
      assert(!Thread.interrupted())
      assert(control.problem.exists(_.contains("why")))
      file.text = () => text("")
      control.refresh()
      assert(control.problem === None && mode(control) === "enforce")
    }
  }

  test("a reading that hangs is told once by who watches, and once more when it is over") {
    val hangs = new CountDownLatch(1)
    val file = new File(() => { hangs.await(); text("") })
    val control = file.control(refresh = -10000)
    val reader = new Thread(() => control.refresh())
    reader.setDaemon(true)
    reader.start()
    Thread.sleep(20)
    (1 to 3).foreach(_ => control.watch())
    assert(file.reports === 1)
    assert(control.problem.exists(_.contains("does not answer")))
    hangs.countDown()
    reader.join()
    assert(file.reports === 2)
  }
}

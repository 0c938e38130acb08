package org.apache.spark.sql.aqepilot

import java.lang.ref.WeakReference
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.facts.Runs
import org.apache.spark.sql.aqepilot.history.History
import org.apache.spark.sql.aqepilot.policy.PolicySet
import org.apache.spark.sql.aqepilot.record.{DecisionLog, PolicyNews}
import org.apache.spark.sql.aqepilot.run.{Control, PoliciesInForce}
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.AqePilotExtension
import io.aqepilot.log.AqePilotPolicyLoaded

/** One JVM may have one SparkContext after the other: what belongs to one ends with it. */
class ApplicationStateSuite extends AnyFunSuite {

  private val folder = Files.createTempDirectory("aqepilot-application")
  private val file = folder.resolve("control.json")

  private def write(rules: String): Unit =
    Files.write(file, s"""{"format": 1, "version": 1, "rules": [$rules]}""".getBytes(UTF_8))

  private def withSpark[T](settings: (String, String)*)(body: SparkSession => T): T = {
    val builder = SparkSession
      .builder()
      .master("local[1]")
      .config("spark.sql.extensions", classOf[AqePilotExtension].getName)
      .config("spark.ui.enabled", "false")
      .config("spark.aqepilot.control", file.toString)
      .config("spark.aqepilot.policies", "daily")
      .config("spark.aqepilot.policy.daily.shuffle_partitions", "3")
      .config("spark.aqepilot.policy.daily.when", "query.job = 'daily'")
    val spark = settings.foldLeft(builder) { case (b, (key, value)) => b.config(key, value) }
      .getOrCreate()
    try body(spark)
    finally spark.stop()
  }

  private def partitions(spark: SparkSession): Int = {
    val grouped = spark.range(0, 100, 1, 2).groupBy("id").count().groupBy("count").count()
    grouped.collect()
    """hashpartitioning\(count#\d+L?, (\d+)"""
      .r
      .findFirstMatchIn(grouped.queryExecution.executedPlan.toString)
      .get
      .group(1)
      .toInt
  }

  /** Lines with what structured logs have beside them. */
  private def logged(body: => Unit): Seq[(String, Map[String, String])] =
    LoggedLines.during { lines =>
      body
      lines.withContext
    }

  private def own(entry: (String, String)) =
    Set("policy", "point", "reason", "job", "run").contains(entry._1)

  test("what is wrong is logged once in each application, and once in each outage") {
    write("")
    val settings = Seq(
      "spark.aqepilot.attempt" -> "2",
      "spark.aqepilot.job" -> "nightly",
      "spark.aqepilot.run" -> "of today",
      "spark.aqepilot.policy.daily.skew_join" -> "nothing"
    )
    def once() = logged {
      withSpark(settings: _*) { spark =>
        spark.newSession().sql("SELECT * FROM aqepilot_status()").collect()
        val control = Control.of(spark.sparkContext).get
        (1 to 2).foreach { _ =>
          Files.delete(file)
          control.refresh()
          write("")
          control.refresh()
        }
      }
    }
    (1 to 2).foreach { _ =>
      val lines = once()
      def times(word: String) = lines.count(_._1.contains(word))
      assert(times("RETRIED_RUN") === 1, lines)
      assert(times("POLICY_TEXT_INVALID") === 1, lines)
      assert(times("CONTROL_UNREACHABLE") === 2, lines)
      def beside(word: String) =
        lines.collectFirst { case (line, context) if line.contains(word) => context }.get
      val run = Map("job" -> "nightly", "run" -> "of today")
      assert(beside("RETRIED_RUN").filter(own) === run + ("reason" -> "RETRIED_RUN"))
      assert(beside("POLICY_TEXT_INVALID").filter(own) === run ++
        Map("reason" -> "POLICY_TEXT_INVALID", "policy" -> "daily", "point" -> "skew_join"))
      assert(
        beside("CONTROL_UNREACHABLE").filter(own) === run + ("reason" -> "CONTROL_UNREACHABLE")
      )
    }
  }

  test("a stopped SparkContext is held by nothing of ours") {
    write("""{"mode": "shadow", "policy": "other"}""")
    // No query: Spark's own pools of threads hold the session of the first that they ran for.
    val history = "spark.aqepilot.history" -> folder.resolve("pack").toString
    def stopped(): WeakReference[SparkContext] = withSpark(history) { spark =>
      val sc = spark.sparkContext
      assert(Control.of(sc).get.limits.rules.size === 1)
      assert(Runs.jobs(spark.sessionState.conf, sc) === Set(sc.appName))
      assert(DecisionLog.getActive.isDefined)
      assert(History.of(sc).get.problem.exists(_.contains("FileNotFoundException")))
      new WeakReference(sc)
    }
    val context = stopped()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    def isRead = Thread.getAllStackTraces.keySet.toArray.map(_.toString)
      .exists(name => name.contains("aqepilot-control") || name.contains("aqepilot-history"))
    val end = System.nanoTime() + 120000000000L
    while ((context.get != null || isRead) && System.nanoTime() < end) {
      System.gc()
      Thread.sleep(50)
    }
    assert(context.get == null && !isRead)
  }

  test("a session's policies are told once each, however many others come") {
    withSpark() { spark =>
      val reported = new ConcurrentLinkedQueue[String]
      spark.sparkContext.addSparkListener(new SparkListener {
        override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
          case loaded: AqePilotPolicyLoaded => reported.add(loaded.policy)
          case _                            =>
        }
      })
      val own = PoliciesInForce.of(spark.sessionState.conf)
      def tell(session: SparkSession, set: PolicySet): Unit = {
        SparkSession.setActiveSession(session)
        Sessions.active.foreach(PolicyNews.tell(_, set))
        spark.sparkContext.listenerBus.waitUntilEmpty()
      }
      tell(spark, own)
      val others = Seq.tabulate(1500)(n => own.policies.head.copy(name = s"other$n"))
      (1 to 8).foreach(_ => tell(spark.newSession(), new PolicySet(others, Nil)))
      tell(spark, own)
      assert(reported.asScala.count(_ == "daily") === own.policies.size)
      assert(reported.size === own.policies.size + 8 * others.size)
    }
  }

  test("a session names its job where sessions may decide, and evades no rule by that") {
    write("")
    withSpark("spark.aqepilot.job" -> "nightly") { spark =>
      assert(partitions(spark) === 200)
      spark.conf.set("spark.aqepilot.job", "daily")
      assert(partitions(spark) === 3)
      write("""{"mode": "off", "job": "nightly"}""")
      Control.of(spark.sparkContext).get.refresh()
      assert(partitions(spark) === 200)
    }
  }

  Seq("shadow", "deny").foreach { word =>
    test(s"with session_policies=$word a session's own job and run do not count, which is told") {
      write("")
      withSpark("spark.aqepilot.job" -> "nightly", "spark.aqepilot.session_policies" -> word) {
        spark =>
          spark.conf.set("spark.aqepilot.job", "daily")
          spark.conf.set("spark.aqepilot.run", "another")
          spark.conf.set("spark.openlineage.parentJobName", "daily")
          assert(partitions(spark) === 200)
          val status =
            spark.sql("SELECT kind, name, value, detail FROM aqepilot_status()").collect()
          def rows(kind: String) = status.filter(_.getString(0) == kind)
          assert(rows("run").map(_.getString(2)).toSeq.take(2) ===
            Seq("nightly", spark.sparkContext.applicationId))
          assert(rows("problem").map(_.getString(1)).toSeq === Seq("RUN_IGNORED", "RUN_IGNORED"))
      }
    }
  }

  Seq("allow" -> 3, "shadow" -> 200, "deny" -> 200).foreach { case (word, expected) =>
    test(
      s"with session_policies=$word a session has $expected partitions by a policy that had expired"
    ) {
      write("")
      withSpark(
        "spark.aqepilot.job" -> "daily",
        "spark.aqepilot.session_policies" -> word,
        "spark.aqepilot.policy.daily.expires" -> "2026-01-01"
      ) { spark =>
        assert(partitions(spark) === 200)
        spark.conf.set("spark.aqepilot.policy.daily.expires", "2999-01-01")
        assert(partitions(spark) === expected)
        spark.conf.unset("spark.aqepilot.policy.daily.expires")
        assert(partitions(spark) === expected)
      }
    }
  }
}

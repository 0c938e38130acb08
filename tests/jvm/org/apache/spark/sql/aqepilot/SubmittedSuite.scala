package org.apache.spark.sql.aqepilot

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.decision.DecisionPoints
import org.apache.spark.sql.aqepilot.points.shuffle_partitions.ShufflePartitionsPoint
import org.apache.spark.sql.aqepilot.policy.sql.KnownTexts
import org.apache.spark.sql.aqepilot.policy.{ConfiguredPolicies, PolicySet}
import org.apache.spark.sql.aqepilot.record.DecisionLog
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

import io.aqepilot.AqePilotExtension

/** What an application was submitted with is made ready when it starts, beside it. */
class SubmittedSuite extends AnyFunSuite with Eventually {

  implicit override val patienceConfig: PatienceConfig =
    PatienceConfig(Span(60, Seconds), Span(20, Millis))

  private val prefix = "spark.aqepilot.policy.started."

  private def withSpark[T](settings: (String, String)*)(body: SparkSession => T): T = {
    val builder = SparkSession
      .builder()
      .master("local[1]")
      .config("spark.sql.extensions", classOf[AqePilotExtension].getName)
      .config("spark.ui.enabled", "false")
      .config("spark.aqepilot.policies", "started")
    val spark = settings.foldLeft(builder) { case (b, (key, value)) => b.config(key, value) }
      .getOrCreate()
    try body(spark)
    finally {
      spark.stop()
      SparkSession.clearActiveSession()
      SparkSession.clearDefaultSession()
    }
  }

  private def isStarting =
    Thread.getAllStackTraces.keySet.asScala.exists(_.getName == "aqepilot-start")

  private def logged(lines: LoggedLines, text: String) =
    eventually(assert(lines.all.exists(_.contains(text)), lines.all))

  test("policies are compiled before a query asks, and nothing else is to be seen of it") {
    val text = "CASE WHEN query.app_name <> 'compiled at the start' THEN 3 END"
    withSpark(prefix + "shuffle_partitions" -> text) { spark =>
      eventually(assert(!isStarting))
      assert(KnownTexts.has(text, ShufflePartitionsPoint))
      val log = DecisionLog.getActive.get
      assert(log.decisions(None).isEmpty && log.counters.forall(_._2 == 0), log.counters)
      spark.range(0, 10, 1, 2).selectExpr("id % 3 AS k").groupBy("k").count().collect()
      assert(log.decisions(None).map(_._1.reason).distinct === Seq("APPLIED"))
    }
  }

  test("a bad text is told though no query runs") {
    LoggedLines.during { lines =>
      withSpark(prefix + "shuffle_partitions" -> "no_such_fact + 1") { _ =>
        logged(lines, "POLICY_TEXT_INVALID: spark.aqepilot.policy.started.shuffle_partitions")
      }
    }
  }

  test("strict fails at the start, not later") {
    val e = intercept[SparkException] {
      withSpark(prefix + "skew_join" -> "no_such_fact", "spark.aqepilot.strict" -> "true")(_ => ())
    }
    assert(e.getMessage.contains("POLICY_TEXT_INVALID"))
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    org.apache.spark.SparkContext.getActive.foreach(_.stop())
  }

  test("an application that ends at once leaves nothing running") {
    (1 to 3).foreach { n =>
      withSpark(prefix + "shuffle_partitions" -> s"CASE WHEN $n > 1 THEN 3 END")(_ => ())
    }
    eventually(assert(!isStarting))
  }

  test("a first ask is rehearsed at each point without a fault") {
    withSpark() { spark =>
      val texts = DecisionPoints.all.map(p => s"${prefix}${p.name}" -> "NULL").toMap +
        (prefix + "when" -> "query.app_name IS NOT NULL")
      val set: PolicySet = ConfiguredPolicies.submitted(Seq("started"), texts.get, None)
      assert(set.policies.count(_.isLive) === DecisionPoints.all.size, set.problems)
      assert(new FirstAsk(spark.sparkContext, set).rehearse() === Nil)
      assert(DecisionLog.getActive.get.decisions(None).isEmpty)
    }
  }
}

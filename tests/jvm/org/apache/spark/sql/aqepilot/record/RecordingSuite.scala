package org.apache.spark.sql.aqepilot.record

import java.util.concurrent.ConcurrentLinkedQueue

import org.apache.spark.SparkContext
import org.apache.spark.scheduler._
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.decision.Decided
import org.apache.spark.sql.execution.SQLExecution
import org.scalatest.BeforeAndAfterEach
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.log.{AqePilotDecision, AqePilotPolicyLoaded, AqePilotQueryClosed}

/** A SparkContext with its record, and the events that it posts. */
trait RecordingSuite extends AnyFunSuite with BeforeAndAfterEach {
  protected var spark: SparkSession = _
  private val seen = new ConcurrentLinkedQueue[SparkListenerEvent]

  protected def start(settings: (String, String)*): DecisionLog = {
    val builder = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false")
      .config("spark.sql.shuffle.partitions", "4")
    spark = settings.foldLeft(builder) { case (b, (k, v)) => b.config(k, v) }.getOrCreate()
    sc.addSparkListener(new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = seen.add(event)
    })
    DecisionLog.of(sc)
  }

  protected def sc: SparkContext = spark.sparkContext

  override def afterEach(): Unit = {
    DecisionLog.fates = Fates
    if (spark != null) spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
    seen.clear()
  }

  protected def decision(id: Long, execution: Option[Long], session: String = "s") =
    AqePilotDecision(
      1,
      id,
      id,
      session,
      execution,
      Some("f" * 64),
      "p",
      Some(1),
      Some("left"),
      Some("a ⋈ b"),
      s"facts$id",
      None,
      Some("sales"),
      Some("0123456789ab"),
      Some("enforce"),
      Some("SHUFFLE_HASH"),
      None,
      None,
      applied = true,
      "APPLIED",
      None,
      10.4,
      Some("join 1, left side")
    )

  implicit protected class Deciding(log: DecisionLog) {
    def decide(e: AqePilotDecision, facts: String = "{\"a\":1}"): Unit =
      log.decided(Seq(Decided(e)), (_, _) => Some(WrittenFacts("c", "{\"conf\":{}}", facts)))
  }

  protected def events[T <: SparkListenerEvent](kind: Class[T]): Seq[T] = {
    DecisionLog.of(sc).decisions(None)
    // What is waited for in one queue may be posted to another that was empty before.
    (1 to 2).foreach(_ => sc.listenerBus.waitUntilEmpty())
    seen.toArray.toSeq.filter(kind.isInstance).map(kind.cast)
  }
  protected def closed = events(classOf[AqePilotQueryClosed])
  protected def decided = events(classOf[AqePilotDecision])

  /** Runs `action` with a planner strategy that decides once per execution. */
  protected def decidingAtPlanning[T](record: DecisionLog)(action: => T): T = {
    val strategy = new org.apache.spark.sql.execution.SparkStrategy {
      override def apply(p: org.apache.spark.sql.catalyst.plans.logical.LogicalPlan) = {
        val execution = Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).map(_.toLong)
        if (p.children.nonEmpty) record.decide(decision(record.nextDecisionId(), execution))
        Nil
      }
    }
    spark.experimental.extraStrategies = Seq(strategy)
    try action
    finally spark.experimental.extraStrategies = Nil
  }

  protected def shuffled() = spark.range(0, 20000, 1, 4).selectExpr("id % 100 AS k", "id")
    .groupBy("k").count()

  protected def policy(name: String, text: String, when: Option[String], error: Option[String]) =
    AqePilotPolicyLoaded(
      1,
      0,
      "s",
      name,
      "p",
      "0123456789ab",
      text,
      when,
      "enforce",
      "session",
      "u",
      error
    )
}

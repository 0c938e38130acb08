package org.apache.spark.sql.aqepilot.ui

import java.lang.reflect.{InvocationHandler, Method, Proxy}

import scala.jdk.CollectionConverters._

import org.apache.spark.scheduler.SparkListenerEvent
import org.apache.spark.sql.aqepilot.spark.Servlets
import org.apache.spark.status.AppStatusStore
import org.apache.spark.ui.SparkUI
import org.apache.spark.util.kvstore.{InMemoryStore, KVStore}
import org.apache.spark.{SecurityManager, SparkConf}

import io.aqepilot.log._

/** Events and requests of nobody, for the suites of the pages. */
object MadeRecord {

  val Sizes = "[31878,42426,38568,31878,26340,194958,35064,38568]"
  val Facts: String = side("left") + "," + side("right").replace("194958", "51336")

  private def side(name: String) =
    s""""$name":{"tables":["l"],"num_partitions":8,"bytes_by_partition_id":$Sizes,""" +
      """"shuffle_bytes":439680,"max_bytes":194958,"median_bytes":36816,"row_count":null}"""

  def decision(id: Long, query: Option[Long] = Some(1), facts: Option[String] = None) =
    AqePilotDecision(
      schemaVersion = EventSchema.Version,
      time = 1000 + id,
      decisionId = id,
      sessionId = "s",
      executionId = query,
      fingerprint = Some("f"),
      point = "skew_join",
      joinId = Some(1),
      side = None,
      tables = Some("l \u22c8 r"),
      factsId = "facts",
      facts = facts,
      policy = Some("sales"),
      revision = Some("8b3fd2129626"),
      mode = Some("enforce"),
      answer = Some("""{"left_splits":[null,null,null,null,null,3,null,null]}"""),
      sparkAnswer = Some("""{"skew_factor":5.0}"""),
      sparkStrategy = Some("SortMergeJoin, 8 tasks"),
      applied = true,
      reason = "APPLIED",
      detail = None,
      askedMicros = 10,
      subject = Some("join 1")
    )

  def closed(query: Long, fates: Seq[AqePilotFate] = Nil, claimed: Seq[Long] = Nil) =
    AqePilotQueryClosed(
      EventSchema.Version,
      2000,
      "s",
      query,
      Some("f"),
      succeeded = true,
      None,
      fates,
      0,
      claimed,
      planningMillis = Some(12),
      askedMicros = Some(340.5),
      attempt = Some(1),
      controlVersion = Some(3)
    )

  def loaded(text: String = "true") = AqePilotPolicyLoaded(
    EventSchema.Version,
    1000,
    "s",
    "sales",
    "skew_join",
    "8b3fd2129626",
    text,
    None,
    "enforce",
    "submitted",
    "u",
    None
  )

  val unit: AqePilotExperiment = AqePilotExperiment(
    EventSchema.Version,
    1000,
    "e",
    "job_run",
    "j|r",
    "sales",
    "spark:50,sales:50",
    "task_ms",
    "assigned",
    None,
    Some(1),
    "j",
    "r",
    Some(1)
  )

  val control: AqePilotControl = AqePilotControl(
    EventSchema.Version,
    1000,
    "/control.json",
    Some(3),
    Seq("policy sales is at most shadow"),
    None
  )

  /** A store with what a listener makes of events. */
  def stored(events: SparkListenerEvent*): KVStore = {
    val store = new InMemoryStore
    val listener = new RecordListener(store, 1000, 16L * 1024 * 1024, () => ())
    events.foreach(listener.onOtherEvent)
    store
  }

  def tab(store: KVStore): RecordTab = {
    val conf = new SparkConf(false)
    new RecordTab(
      SparkUI.create(
        None,
        new AppStatusStore(store),
        conf,
        new SecurityManager(conf),
        "app",
        "/base",
        0,
        "4.0.0"
      )
    )
  }

  def request(parameters: (String, String)*): Servlets.Request = {
    val known = parameters.toMap
    val answers = new InvocationHandler {
      override def invoke(proxy: Any, method: Method, arguments: Array[AnyRef]): AnyRef =
        method.getName match {
          case "getParameter"    => known.get(arguments(0).toString).orNull
          case "getParameterMap" => known.map { case (k, v) => k -> Array(v) }.asJava
          case _                 => null
        }
    }
    Proxy.newProxyInstance(getClass.getClassLoader, Array(classOf[Servlets.Request]), answers)
      .asInstanceOf[Servlets.Request]
  }
}

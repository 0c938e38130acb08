package org.apache.spark.sql.aqepilot.record

import java.nio.file.Files

import scala.util.Try

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.aqepilot.facts.Signature
import org.apache.spark.sql.execution.QueryExecution

import io.aqepilot.log.AqePilotSubPlan

class SubPlansSuite extends RecordingSuite {
  private val folder =
    Files.createTempDirectory("aqepilot-sub-plans").toUri.toString.stripSuffix("/")

  private val learning = "spark.aqepilot.history.learn" -> "true"

  private def begin(settings: (String, String)*): Unit = {
    start(settings: _*)
    spark.range(
      0,
      20000,
      1,
      4
    ).selectExpr("id", "id % 100 AS shop", "id % 7 AS item", "id % 1000 AS v")
      .write.mode("overwrite").parquet(s"$folder/sales")
    spark.range(0, 100, 1, 2).selectExpr("id AS shop", "id % 10 AS town")
      .write.mode("overwrite").parquet(s"$folder/shops")
    Seq("sales", "shops").foreach(t => spark.read.parquet(s"$folder/$t").createOrReplaceTempView(t))
  }

  /** What the query's closing event has of its sub-plans. */
  private def measured(query: => DataFrame): Seq[AqePilotSubPlan] = {
    val before = closed.size
    query.collect()
    val events = closed.drop(before)
    assert(events.size === 1)
    events.head.subPlans
  }

  private def signature(sql: String): Signature = {
    val df = spark.sql(sql)
    Signature.of(
      df.getClass.getMethod("queryExecution").invoke(df).asInstanceOf[QueryExecution].optimizedPlan
    ).get
  }

  private def plan(all: Seq[AqePilotSubPlan], sql: String): Option[AqePilotSubPlan] = {
    val wanted = signature(sql)
    all.find(s => s.kind == "PLAN" && s.same == wanted.sameText && s.shape == wanted.shapeText)
  }

  private val joined =
    "FROM sales JOIN shops ON sales.shop = shops.shop WHERE v < 500 AND town <> 3"

  private val parts = Seq(
    "SELECT * FROM sales WHERE v < 500",
    "SELECT * FROM shops WHERE town <> 3",
    s"SELECT * $joined",
    s"SELECT town, item, count(*) $joined GROUP BY town, item"
  )

  private val strategies = Seq(
    Seq("spark.sql.autoBroadcastJoinThreshold" -> "10m"),
    Seq("spark.sql.autoBroadcastJoinThreshold" -> "-1"),
    Seq(
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      "spark.sql.join.preferSortMergeJoin" -> "false"
    ),
    Seq("spark.sql.autoBroadcastJoinThreshold" -> "-1", "spark.sql.adaptive.enabled" -> "false"),
    Seq("spark.sql.autoBroadcastJoinThreshold" -> "-1", "spark.sql.shuffle.partitions" -> "9"),
    Seq("spark.sql.codegen.wholeStage" -> "false")
  )

  test("the rows of filters, joins and aggregates are counted alike under each strategy") {
    begin(learning)
    strategies.foreach { settings =>
      settings.foreach { case (k, v) => spark.conf.set(k, v) }
      val all = measured(spark.sql(parts.last))
      val expected = parts.map(p => p -> Some(spark.sql(p).count()))
      expected.foreach { case (sql, rows) =>
        assert(plan(all, sql).flatMap(_.rows) === rows, s"$settings $sql\n${all.mkString("\n")}")
      }
      settings.foreach { case (k, _) => spark.conf.unset(k) }
    }
  }

  test("a shuffle has its sizes, and what the stage did that read it") {
    begin(learning, "spark.sql.autoBroadcastJoinThreshold" -> "-1")
    val all = measured(spark.sql(parts.last))
    val shuffles = all.filter(_.kind == "SHUFFLE")
    assert(shuffles.size === 3, all.mkString("\n"))
    shuffles.foreach { s =>
      assert(
        s.partitions === Some(4) && s.rows.get > 0 && s.bytes.get > 0 && s.shuffleBytes.get > 0
      )
      assert(s.maxPartitionBytes.get >= s.medianPartitionBytes.get)
      assert(s.maxPartitionBytes.get <= s.shuffleBytes.get && s.inputBytes.get > 0)
      assert(s.taskMillis.get > 0 && s.readRows.get >= s.rows.get && s.readBytes.get > 0)
      assert(s.spilledBytes === Some(0) && s.failures === Some(0) && s.peakMemoryBytes.get > 0)
    }
    val sides = shuffles.filter(_.rows.exists(r => r == 10000 || r == 90))
    assert(sides.map(_.taskMillis).distinct.size === 1 && sides.map(_.readRows).distinct === Seq(
      Some(10090)
    ))
    val partial = all.filter(_.inputRows.isDefined)
    assert(partial.map(p => (p.kind, p.inputRows)) === Seq(("PLAN", Some(9000))))
    assert(partial.head.rows.get >= 63)
  }

  test("a broadcast side has its bytes") {
    begin(learning)
    val side = plan(measured(spark.sql(parts.last)), parts(1)).get
    assert(side.rows === Some(90) && side.inputBytes.get > 0)
    // Of two numbers each; the hash table has a page of 1 MB or more.
    assert(side.bytes.exists(b => b >= 90 * 16 && b <= 90 * 40), side.bytes)
  }

  test("the query has its task time, and comes first") {
    begin(learning)
    val all = measured(spark.sql(parts.last))
    assert(all.map(_.kind).count(_ == "QUERY") === 1)
    val query = all.head
    assert(
      query.kind === "QUERY" && query.same.matches("[0-9a-f]{16}") && query.same === query.shape
    )
    assert(query.taskMillis.get > 0 && query.failures === Some(0) && query.inputBytes.get > 0)
    assert(closed.last.fingerprint.get.take(16) === query.same)
  }

  test("what was not read to its end is not counted") {
    begin(learning)
    val cut = measured(spark.sql(s"SELECT * $joined LIMIT 3"))
    assert(plan(cut, s"SELECT * $joined").isEmpty, cut.mkString("\n"))
    assert(plan(cut, parts(1)).isDefined)
    val empty = measured(spark.sql(
      "SELECT * FROM sales JOIN (SELECT * FROM shops WHERE town > 99) t ON sales.shop = t.shop"
    ))
    assert(!empty.exists(s => s.kind == "PLAN" && s.rows.exists(_ > 0)), empty.mkString("\n"))
  }

  test("a shuffle that is read twice is measured once") {
    begin(learning, "spark.sql.autoBroadcastJoinThreshold" -> "-1")
    val counted = "(SELECT shop, count(*) AS n FROM sales GROUP BY shop)"
    val all = measured(spark.sql(s"SELECT * FROM $counted a JOIN $counted b ON a.shop = b.n"))
    val names = all.map(s => (s.kind, s.same))
    assert(names.distinct === names)
    assert(plan(all, s"SELECT * FROM $counted").flatMap(_.rows) === Some(100))
  }

  test("a query that failed has failed, and nothing else is known of it") {
    begin(learning)
    val before = closed.size
    intercept[Exception](spark.sql("SELECT raise_error(cast(v AS string)) FROM sales").collect())
    val parts = closed.drop(before).flatMap(_.subPlans)
    assert(parts.map(s => (s.kind, s.failures)) === Seq(("QUERY", Some(1))))
  }

  test("nothing is known of a query that somebody cancelled") {
    begin(learning)
    val before = closed.size
    spark.udf.register("slow", (v: Long) => { Thread.sleep(20); v })
    var failure = Option.empty[Throwable]
    val query = new Thread(() =>
      failure =
        Try(spark.sql("SELECT max(slow(v)) FROM sales WHERE id < 400").collect()).failed.toOption
    )
    query.start()
    val context = spark.sparkContext
    while (context.statusTracker.getActiveJobIds().isEmpty && query.isAlive) Thread.sleep(10)
    context.cancelAllJobs()
    query.join()
    assert(failure.exists(_.getMessage.contains("cancelled")), failure)
    assert(closed.drop(before).flatMap(_.subPlans) === Nil)
  }

  test("a query that ran no task has no closing event") {
    begin(learning)
    val before = closed.size
    spark.sql("SET a.b = 1").collect()
    assert(closed.size === before)
  }

  test("nothing is measured where history is not learnt, nor written where no facts are") {
    begin()
    spark.sql(parts.last).collect()
    assert(closed.isEmpty)
    spark.stop()
    begin(learning, "spark.aqepilot.log.facts" -> "none")
    spark.sql(parts.last).collect()
    assert(closed.nonEmpty && closed.forall(_.subPlans.isEmpty))
  }

  test("history is learnt where the application was submitted with policies, unless it says no") {
    begin("spark.aqepilot.policies" -> "sales")
    assert(measured(spark.sql(parts.last)).nonEmpty)
    spark.stop()
    begin("spark.aqepilot.policies" -> "sales", "spark.aqepilot.history.learn" -> "false")
    val before = closed.size
    spark.sql(parts.last).collect()
    assert(closed.size === before)
  }
}

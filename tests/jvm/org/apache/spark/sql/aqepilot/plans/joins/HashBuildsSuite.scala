package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.SparkEnv
import org.apache.spark.memory.UnifiedMemoryManager
import org.apache.spark.sql.aqepilot.decision.Guardrails
import org.apache.spark.sql.aqepilot.facts.Cluster
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{Row, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** No decision makes a task hold more hash tables than its memory holds, whoever chose the joins. */
class HashBuildsSuite extends AnyFunSuite with AdaptiveSparkPlanHelper with BeforeAndAfterAll {

  private lazy val spark = {
    val made = SparkSession
      .builder()
      .master("local[2]")
      .config("spark.ui.enabled", "false")
      .config("spark.default.parallelism", "7")
      .config("spark.sql.extensions", "io.aqepilot.AqePilotExtension")
      .config("spark.sql.shuffle.partitions", "4")
      .config("spark.sql.autoBroadcastJoinThreshold", "-1")
      .config("spark.sql.adaptive.advisoryPartitionSizeInBytes", "10KB")
      .config("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "10KB")
      .config("spark.sql.adaptive.skewJoin.skewedPartitionFactor", "1.5")
      .config("spark.sql.adaptive.coalescePartitions.minPartitionNum", "4")
      .getOrCreate()
    def table(name: String, rows: Long, key: String): Unit =
      made.range(0, rows, 1, 8).selectExpr(s"$key AS k", "id AS v").createOrReplaceTempView(name)
    table("even", 600, "id % 300")
    table("other", 1000, "id")
    table("third", 1000, "id")
    table("skewed", 20000, "if(id % 10 < 9, 0, id % 300)")
    made
  }

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private def run(
      sql: String,
      point: String,
      text: String,
      guard: String
  ): (Seq[Row], SparkPlan, Seq[Row]) = {
    val query = {
      spark.conf.set("spark.aqepilot.policies", "test")
      spark.conf.set(s"spark.aqepilot.policy.test.$point", text)
      spark.conf.set("spark.aqepilot.guard.max_hash_build_bytes", guard)
      spark.sql(sql)
    }
    try {
      val rows = query.collect().toSeq
      val id = spark.sql("SELECT max(execution_id) FROM aqepilot_decisions()").head().getLong(0)
      val decided = spark
        .sql(s"SELECT reason, detail FROM aqepilot_decisions() WHERE execution_id = $id")
        .collect()
      (rows, query.queryExecution.executedPlan, decided.toSeq)
    } finally {
      spark.conf.unset("spark.aqepilot.policies")
      spark.conf.unset(s"spark.aqepilot.policy.test.$point")
      spark.conf.unset("spark.aqepilot.guard.max_hash_build_bytes")
    }
  }

  private def reasons(decided: Seq[Row]) = decided.map(_.getString(0)).distinct

  private val overSkewed =
    "SELECT /*+ SHUFFLE_HASH(s) */ count(*), sum(e.v), sum(s.v) FROM even e JOIN skewed s ON e.k = s.k"

  private def splits(plan: SparkPlan) =
    collect(plan) { case j: ShuffledHashJoinExec => j.isSkewJoin }

  test(
    "a skewed build side that Spark splits stays split where its table would not fit in one task"
  ) {
    val plain = spark.sql(overSkewed)
    val expected = plain.collect().toSeq
    assert(splits(plain.queryExecution.executedPlan) === Seq(true))
    val whole = "named_struct('skew_factor', 1000000.0D)"

    val (rows, plan, decided) = run(overSkewed, "skew_join", whole, "1m")
    assert(rows === expected)
    assert(reasons(decided) === Seq("GUARD_HASH_BUILD_BYTES"), decided)
    assert(decided.head.getString(1).contains("a task's hash table"), decided)
    assert(splits(plan) === Seq(true))

    val (again, left, fits) = run(overSkewed, "skew_join", whole, "100m")
    assert(again === expected)
    assert(reasons(fits) === Seq("APPLIED"), fits)
    assert(splits(left) === Seq(false))
  }

  test("a task's tables of several hash joins are taken together") {
    val sql =
      """SELECT /*+ SHUFFLE_HASH(o, t) */ count(*) FROM even e JOIN other o ON e.k = o.k
        |JOIN third t ON e.k = t.k""".stripMargin
    val one = "named_struct('target_bytes', aqepilot_bytes('1g'), 'min_partitions', 1)"
    // Spark leaves each partition to a task of its own. A table of a thousand rows takes some 150 KB.
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    val reads = Seq("250k", "1m").map { guard =>
      val (rows, plan, decided) = run(sql, "partition_coalescing", one, guard)
      assert(rows === Seq(Row(600L)))
      assert(collect(plan) { case j: ShuffledHashJoinExec => j }.length === 2)
      reasons(decided)
    }
    spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    assert(reads.head.contains("GUARD_HASH_BUILD_BYTES"), reads)
    assert(reads.last === Seq("APPLIED"))
  }

  private val threeByKey =
    "SELECT count(*) FROM even e JOIN other o ON e.k = o.k JOIN third t ON e.k = t.k"

  test("the tables of joins that a policy has hashed in one stage are taken together") {
    val hashed = "named_struct('strategy', 'SHUFFLE_HASH', 'build_side', 'RIGHT')"
    val reads = Seq("250k", "1m").map { guard =>
      val (rows, _, decided) = run(threeByKey, "join_selection", hashed, guard)
      assert(rows === Seq(Row(600L)))
      reasons(decided).sorted -> decided
    }
    assert(reads.head._1 === Seq("APPLIED", "GUARD_HASH_BUILD_BYTES"), reads)
    assert(reads.last._1 === Seq("APPLIED"), reads)
  }

  test("the tables of joins that a policy has hashed while they run are taken together") {
    val reads = Seq("250k", "1m").map { guard =>
      val text = "CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END"
      val (rows, _, decided) = run(threeByKey, "dynamic_join_selection", text, guard)
      assert(rows === Seq(Row(600L)))
      reasons(decided).toSet -> decided
    }
    assert(reads.head._1.contains("GUARD_HASH_BUILD_BYTES"), reads)
    assert(!reads.last._1.contains("GUARD_HASH_BUILD_BYTES"), reads)
  }

  test("the tasks that run at once are the master's threads, whatever the default parallelism") {
    assert(Cluster.taskSlots(spark.sparkContext) === Some(2))
  }

  test(
    "a task's table fits what Spark guarantees for execution when the cache is full, and a page more"
  ) {
    val guards = Guardrails.of(new SQLConf, spark.sparkContext)
    SparkEnv.get.memoryManager match {
      case all: UnifiedMemoryManager =>
        val page = all.pageSizeBytes
        assert((guards.maxHashBuildBytes + page) * 2 <= all.maxHeapMemory / 2)
        assert((guards.maxHashBuildBytes + 2 * page) * 2 > all.maxHeapMemory / 4)
      case other => fail(s"$other")
    }
  }
}

package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class WrittenQuerySuite extends AnyFunSuite with BeforeAndAfterAll {

  private lazy val spark = SparkSession.builder().master("local[1]").config(
    "spark.ui.enabled",
    "false"
  ).config("spark.sql.shuffle.partitions", "4").getOrCreate()

  override def beforeAll(): Unit = {
    spark.range(0, 100, 1, 6).selectExpr("id AS n", "id % 3 AS k", "id / 8D AS d")
      .createOrReplaceTempView("t")
    spark.range(3).selectExpr("id AS k", "id AS x").createOrReplaceTempView("s")
  }

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private def query(sql: String): WrittenQuery = query(spark.sql(sql))

  private def query(df: DataFrame): WrittenQuery =
    new WrittenQuery(df.queryExecution.optimizedPlan, spark.sessionState.conf, 5)

  private val users = Seq(
    "SELECT /*+ REPARTITION(3) */ * FROM t" -> Some("REPARTITION"),
    "SELECT /*+ REPARTITION(k) */ * FROM t" -> Some("REPARTITION"),
    "SELECT /*+ REPARTITION_BY_RANGE(3, k) */ * FROM t" -> Some("REPARTITION"),
    "SELECT /*+ COALESCE(3) */ * FROM t" -> Some("COALESCE"),
    "SELECT /*+ REBALANCE */ * FROM t" -> Some("REBALANCE"),
    "SELECT * FROM t DISTRIBUTE BY k" -> Some("REPARTITION"),
    "SELECT * FROM t CLUSTER BY k" -> Some("SORT_WITHIN_PARTITIONS"),
    "SELECT * FROM t SORT BY k" -> Some("SORT_WITHIN_PARTITIONS"),
    "SELECT * FROM t ORDER BY k" -> Some("SORT"),
    "SELECT n + 1 FROM (SELECT * FROM t SORT BY k) WHERE n > 3" -> Some("SORT_WITHIN_PARTITIONS"),
    "SELECT n, e FROM (SELECT * FROM t SORT BY k) LATERAL VIEW explode(array(n, k)) AS e" ->
      Some("SORT_WITHIN_PARTITIONS"),
    "(SELECT k FROM t SORT BY k) UNION ALL SELECT n FROM t" -> Some("SORT_WITHIN_PARTITIONS"),
    "SELECT k, count(*) FROM (SELECT /*+ REPARTITION(3, k) */ * FROM t) GROUP BY k" ->
      Some("REPARTITION"),
    "SELECT n, x FROM (SELECT /*+ REPARTITION(3, k) */ * FROM t) JOIN s USING (k)" ->
      Some("REPARTITION"),
    "SELECT k, count(*) FROM (SELECT * FROM t SORT BY n) GROUP BY k" -> None,
    "SELECT n, row_number() OVER (PARTITION BY k ORDER BY n) FROM (SELECT * FROM t SORT BY d)" ->
      None,
    "SELECT n, x FROM t JOIN s USING (k)" -> None
  )

  users.foreach { case (sql, expected) =>
    test(s"what the author said: $sql")(assert(query(sql).usersDistribution === expected))
  }

  test("what the author said of a cached query, and of a checkpoint that is sorted") {
    val cached = spark.table("t").repartition(3).cache()
    assert(query(cached.where("n > 2")).usersDistribution === Some("REPARTITION"))
    val joined = cached.join(spark.table("s"), "k")
    assert(query(joined).usersDistribution === Some("REPARTITION"))
    cached.unpersist(blocking = true)
    val sorted = spark.table("t").sort("n").cache()
    assert(query(sorted).usersDistribution === Some("SORT"))
    assert(query(sorted.join(spark.table("s"), "k")).usersDistribution === None)
    sorted.unpersist(blocking = true)
    val plain = spark.sql("SELECT k, count(*) AS c FROM t GROUP BY k").cache()
    assert(query(plain).usersDistribution === None)
    plain.unpersist(blocking = true)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try
      assert(query(spark.table("t").sort("n").localCheckpoint()).usersDistribution === Some("SORT"))
    finally spark.conf.unset("spark.sql.adaptive.enabled")
  }

  test("rows of an RDD, or of a checkpoint that AQE planned, are as their author has them") {
    val made = spark.createDataFrame(spark.table("t").rdd, spark.table("t").schema)
    made.createOrReplaceTempView("made")
    spark.table("t").sort("n").localCheckpoint().createOrReplaceTempView("sorted")
    val queries = Seq(
      "SELECT n + 1 FROM made WHERE k = 1" -> Some("RDD"),
      "SELECT n FROM sorted UNION ALL SELECT n FROM t" -> Some("RDD"),
      "SELECT n, x FROM made JOIN s USING (k)" -> Some("RDD"),
      "SELECT k, count(*) FROM made GROUP BY k" -> None,
      "SELECT n, rank() OVER (PARTITION BY k ORDER BY n) FROM sorted" -> None
    )
    queries.foreach { case (sql, expected) =>
      assert(query(sql).usersDistribution === expected, sql)
    }
    val cached = spark.sql("SELECT n FROM made").cache()
    assert(query(cached).usersDistribution === Some("RDD"))
    cached.unpersist(blocking = true)
    import spark.implicits._
    val typed = spark.createDataset(spark.sparkContext.parallelize(Seq(2L, 1L), 2))
    assert(query(typed.toDF("n")).usersDistribution === Some("RDD"))
  }

  private val limited = Seq(
    "SELECT * FROM t LIMIT 3" -> true,
    "SELECT * FROM t LIMIT 3 OFFSET 1" -> true,
    "SELECT * FROM t TABLESAMPLE (10 PERCENT)" -> true,
    "SELECT k, count(*) FROM (SELECT * FROM t LIMIT 30) GROUP BY k" -> true,
    "SELECT * FROM t WHERE k IN (SELECT k FROM s LIMIT 2)" -> true,
    "SELECT * FROM t WHERE n > (SELECT max(x) FROM s)" -> false,
    "SELECT * FROM t WHERE k IN (SELECT k FROM s)" -> false
  )

  limited.foreach { case (sql, is) =>
    test(s"limited: $sql")(assert(query(sql).isLimited === is))
  }

  private val columns = Seq(
    ("SELECT n, d, map(n, k) AS m, array(n) AS a FROM t", "n, d, a", true),
    (
      "SELECT k, sum(d) AS s, sum(n) AS i, avg(n) AS a, count(d) AS c, max(d) AS m FROM t GROUP BY k",
      "k, i, c, m",
      false
    ),
    ("SELECT k, round(s) AS r FROM (SELECT k, sum(d) AS s FROM t GROUP BY k)", "k", false),
    ("SELECT k FROM (SELECT k, sum(d) AS s FROM t GROUP BY k)", "k", true),
    ("SELECT k, collect_list(n) AS l, first(n) AS f FROM t GROUP BY k", "k", false),
    (
      "SELECT n, row_number() OVER (PARTITION BY k ORDER BY d) AS r, rank() OVER (PARTITION BY k " +
        "ORDER BY d) AS s FROM t",
      "n, s",
      false
    ),
    ("SELECT n, k FROM t UNION ALL SELECT k, sum(d) FROM t GROUP BY k", "n", false),
    (
      "SELECT k, e FROM (SELECT k, collect_list(n) AS l FROM t GROUP BY k) " +
        "LATERAL VIEW explode(l) AS e",
      "k",
      false
    )
  )

  columns.foreach { case (sql, by, evenly) =>
    test(s"columns that distribute: $sql") {
      val written = query(sql)
      val plan = spark.sql(sql).queryExecution.optimizedPlan
      val again = new WrittenQuery(plan, spark.sessionState.conf, 5)
      assert(plan.output.filter(again.distributes).map(_.name).mkString(", ") === by)
      assert(written.spreadsEvenly === evenly)
    }
  }

  private val shuffles = Seq(
    ("SELECT n, k FROM t WHERE n > 3", "", ""),
    ("SELECT k + 1 AS j, k AS b, count(*) AS c FROM t GROUP BY k", "AGGREGATE", "b"),
    (
      "SELECT c + 1 AS c, b FROM (SELECT k AS b, count(*) AS c FROM t GROUP BY k)",
      "AGGREGATE",
      "b"
    ),
    ("SELECT n, k, rank() OVER (PARTITION BY k ORDER BY n) AS r FROM t", "WINDOW", "k"),
    ("SELECT n, x, t.k FROM t JOIN s ON t.k = s.k", "JOIN", "k"),
    ("SELECT n, x FROM t CROSS JOIN s", "JOIN", ""),
    ("SELECT n FROM t ORDER BY n", "SORT", "n"),
    ("SELECT /*+ REPARTITION(3, k) */ n, k FROM t", "REPARTITION", "k"),
    ("SELECT /*+ REPARTITION(3) */ n, k FROM t", "REPARTITION", ""),
    ("SELECT n FROM t LIMIT 3", "LIMIT", "")
  )

  shuffles.foreach { case (sql, word, by) =>
    test(s"the last shuffle: $sql") {
      val plan = spark.sql(sql).queryExecution.optimizedPlan
      val written = new WrittenQuery(plan, spark.sessionState.conf, 5)
      assert(written.lastShuffle.fold("")(_.word) === word)
      assert(plan.output.filter(written.isShuffledBy).map(_.name).mkString(", ") === by)
    }
  }

  test("tasks that read the sources") {
    assert(query("SELECT n FROM t WHERE k > 1").tasks === Some(6))
    assert(query("SELECT id FROM range(9)").tasks === Some(5))
    assert(query("SELECT n FROM t UNION ALL SELECT id FROM range(0, 9, 1, 7)").tasks === Some(13))
    assert(query("SELECT k, count(*) FROM t GROUP BY k").tasks === None)
    val path = java.nio.file.Files.createTempDirectory("written").resolve("t").toString
    spark.table("t").write.parquet(path)
    spark.conf.set("spark.sql.files.openCostInBytes", "1GB")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1MB")
    val read = spark.read.parquet(path)
    assert(query(read.where("n > 3")).tasks.exists(_ > 3))
    spark.conf.unset("spark.sql.files.openCostInBytes")
    spark.conf.unset("spark.sql.files.maxPartitionBytes")
    val plan = read.queryExecution.optimizedPlan
    val written =
      new WrittenQuery(plan, spark.sessionState.conf, spark.sparkContext.defaultParallelism)
    assert(written.tasks === Some(read.rdd.getNumPartitions))
  }
}

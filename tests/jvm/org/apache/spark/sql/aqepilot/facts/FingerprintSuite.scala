package org.apache.spark.sql.aqepilot.facts

import java.nio.file.Files

import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class FingerprintSuite extends AnyFunSuite with BeforeAndAfterAll {
  private val folder =
    Files.createTempDirectory("aqepilot-fingerprint").toUri.toString.stripSuffix("/")
  private lazy val spark = SparkSession.builder().master("local[1]")
    .config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", s"$folder/warehouse")
    .getOrCreate()

  override def beforeAll(): Unit = {
    spark.sql(
      "CREATE TABLE sales (id BIGINT, item INT, price DECIMAL(7,2), day DATE, note STRING) " +
        "USING parquet PARTITIONED BY (day)"
    )
    spark.sql("CREATE TABLE returns (id BIGINT, item INT, day DATE) USING parquet")
    spark.sql("CREATE VIEW big_sales AS SELECT id, item, price FROM sales WHERE price > 100")
  }

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  // A DataFrame says its query execution in Spark 3.5 and, being classic, in Spark 4.
  private def text(df: DataFrame): String = {
    val execution = df.getClass.getMethod("queryExecution").invoke(df).asInstanceOf[QueryExecution]
    val all = Fingerprint.text(execution.analyzed)
    assert(Fingerprint.of(execution.analyzed) == Fingerprint.sha256(all))
    all
  }
  private def of(sql: String): String = text(spark.sql(sql))

  private def same(queries: String*): Unit =
    queries.tail.foreach(q => assert(of(q) == of(queries.head)))
  private def different(queries: String*): Unit = {
    val texts = queries.map(of)
    assert(texts.distinct.size == texts.size, texts.mkString("\n---\n"))
  }

  test("literals, and what is computed of them, do not count") {
    same(
      "SELECT id + 1 FROM sales WHERE day = DATE '2026-11-20' AND price > 1.5 AND note LIKE 'a%' LIMIT 10",
      "SELECT id + 12345678901 FROM sales WHERE day = '2026-11-21' AND price > 100 AND note LIKE 'b' LIMIT 5"
    )
    same(
      "SELECT * FROM sales WHERE day > date_sub(DATE '2026-11-20', 7)",
      "SELECT * FROM sales WHERE day > DATE '2026-11-20' - INTERVAL 3 DAYS",
      "SELECT * FROM sales WHERE day > '2026-01-01'"
    )
    same("SELECT * FROM sales WHERE price = -1", "SELECT * FROM sales WHERE price = 1")
    same("SELECT * FROM VALUES (1, 'a'), (2, 'b') v(k, w)", "SELECT * FROM VALUES (3, 'c') v(k, w)")
    different(
      "SELECT * FROM sales WHERE day > date_sub(current_date(), 7)",
      "SELECT * FROM sales WHERE day > '2026-11-20'"
    )
  }

  test("the length of an IN list does not count, what is in question does") {
    same(
      "SELECT * FROM sales WHERE item IN (1, 2)",
      "SELECT * FROM sales WHERE item IN (3, 4, 5, 6, 7)"
    )
    different(
      "SELECT * FROM sales WHERE item IN (1, 2)",
      "SELECT * FROM sales WHERE id IN (1, 2)",
      "SELECT * FROM sales WHERE item NOT IN (1, 2)",
      "SELECT * FROM sales WHERE item IN (1, id)"
    )
  }

  test("names of columns and subqueries do not count, nor do expression ids") {
    same(
      "SELECT id AS a, sum(price) AS b FROM sales s GROUP BY id",
      "SELECT id AS x, sum(price) AS y FROM sales GROUP BY 1",
      "SELECT t.id, sum(t.price) FROM (SELECT * FROM sales) t GROUP BY t.id"
    )
    val q = "SELECT a.id FROM sales a JOIN sales b ON a.id = b.item"
    assert(of(q) == of(q))
    assert(of(q) != of("SELECT a.id FROM sales a JOIN sales b ON b.id = a.item"))
  }

  test("a view is what it stands for") {
    val inlined =
      "SELECT item, count(*) FROM (SELECT id, item, price FROM sales WHERE price > 7) v GROUP BY item"
    spark.sql(
      "CREATE OR REPLACE TEMP VIEW temp_sales AS SELECT id, item, price FROM sales WHERE price > 9"
    )
    same(
      "SELECT item, count(*) FROM big_sales GROUP BY item",
      inlined,
      "SELECT item, count(*) FROM temp_sales GROUP BY item"
    )
    spark.table("sales").where("price > 3").select(
      "id",
      "item",
      "price"
    ).createOrReplaceTempView("df_sales")
    same(inlined, "SELECT item, count(*) FROM df_sales GROUP BY item")
  }

  test("a common table expression is told by what it says, not by its name") {
    same(
      "WITH x AS (SELECT item FROM sales WHERE id > 1) SELECT * FROM x a JOIN x b ON a.item = b.item",
      "WITH y AS (SELECT item FROM sales WHERE id > 2) SELECT * FROM y a JOIN y b ON a.item = b.item"
    )
    different(
      "WITH x AS (SELECT item FROM sales) SELECT * FROM x a JOIN x b ON a.item = b.item",
      "WITH x AS (SELECT item FROM returns) SELECT * FROM x a JOIN x b ON a.item = b.item"
    )
  }

  test("tables, join types, conditions, grouping, order and hints count") {
    different(
      "SELECT id FROM sales",
      "SELECT id FROM returns",
      "SELECT item FROM sales",
      "SELECT DISTINCT id FROM sales",
      "SELECT id FROM sales ORDER BY id",
      "SELECT id FROM sales ORDER BY id DESC",
      "SELECT id FROM sales UNION ALL SELECT id FROM sales",
      "SELECT id FROM sales EXCEPT SELECT id FROM sales",
      "SELECT id FROM sales WHERE item IS NULL"
    )
    val from = "SELECT s.id FROM sales s"
    different(
      s"$from JOIN returns r ON s.id = r.id",
      s"$from LEFT JOIN returns r ON s.id = r.id",
      s"$from JOIN returns r ON s.item = r.item",
      s"$from JOIN returns r ON s.id = r.id AND s.day < r.day",
      s"$from LEFT SEMI JOIN returns r ON s.id = r.id",
      s"$from WHERE id IN (SELECT id FROM returns)",
      s"$from WHERE EXISTS (SELECT 1 FROM returns r WHERE r.id = s.id)",
      s"$from WHERE EXISTS (SELECT 1 FROM returns r WHERE r.item = s.id)",
      "SELECT /*+ BROADCAST(r) */ s.id FROM sales s JOIN returns r ON s.id = r.id"
    )
    different(
      "SELECT count(id) FROM sales",
      "SELECT count(DISTINCT id) FROM sales",
      "SELECT count(id) FILTER (WHERE item > 1) FROM sales",
      "SELECT sum(id) FROM sales",
      "SELECT count(id) FROM sales GROUP BY item",
      "SELECT count(id) FROM sales GROUP BY ROLLUP(item)",
      "SELECT count(id) OVER (PARTITION BY item) FROM sales",
      "SELECT cast(id AS int) FROM sales",
      "SELECT cast(id AS string) FROM sales"
    )
  }

  test("files are told by format and root, without partitions, dates and run ids") {
    def files(format: String, paths: String*): String = {
      paths.foreach(p => spark.range(1).write.mode("overwrite").format(format).save(s"$folder/$p"))
      text(spark.read.format(format).load(paths.map(p => s"$folder/$p"): _*))
    }
    val base = files("parquet", "t/dt=2026-11-20")
    assert(base == files("parquet", "t/dt=2026-11-21/hour=07"))
    assert(base == files("parquet", "t/2026/11/20") && base == files("parquet", "t/20261120"))
    assert(base == files("parquet", "t/2026-11-20", "t/2026-11-21", "t/2026-11-22"))
    assert(base == files("parquet", "t/0f8fad5b-d9cb-469f-a165-70867728950e"))
    assert(base != files("parquet", "u/dt=2026-11-20") && base != files("json", "t/dt=2026-11-20"))
    assert(files("parquet", "run_20261120/x") == files("parquet", "run_20261121/x"))
    assert(files("parquet", "v42/x") != files("parquet", "v43/x"))
  }

  test("paths keep what names them") {
    assert(SourceName.path("s3a://bucket/sales/dt=2026-11-21/hour=07") == "s3a://bucket/sales/*")
    assert(SourceName.path("hdfs://nn:8020/data/2026/11/21/part") == "hdfs://nn:8020/data/*/part")
    assert(SourceName.path("/d/sales_2026-11-21T07:30.parquet") == "/d/sales_*.parquet")
    assert(SourceName.path("/d/top20/12/v1.2") == "/d/top20/12/v1.2")
    assert(SourceName.paths(Seq("/d/a1.csv", "/d/b2.csv")) == "/d/*.csv")
    assert(SourceName.paths(Seq("/d/a1.csv")) == "/d/a1.csv")
  }

  test("a write has the fingerprint of the query that it writes") {
    val query = "SELECT s.id, r.item FROM sales s JOIN returns r ON s.id = r.id"
    val seen = new java.util.concurrent.ConcurrentLinkedQueue[String]
    spark.listenerManager.register(new org.apache.spark.sql.util.QueryExecutionListener {
      override def onSuccess(name: String, e: QueryExecution, nanos: Long): Unit =
        seen.add(Fingerprint.text(e.analyzed))
      override def onFailure(name: String, e: QueryExecution, fault: Exception): Unit = ()
    })
    val expected = of(query)
    spark.sql(s"CREATE TABLE copied USING parquet AS $query")
    spark.sql(s"INSERT INTO copied $query")
    spark.sql(query).write.mode("overwrite").parquet(s"$folder/written")
    spark.sql(query).write.format("noop").mode("overwrite").save()
    val deadline = System.nanoTime() + 20L * 1000 * 1000 * 1000
    while (seen.toArray.count(_ == expected) < 4 && System.nanoTime() < deadline) Thread.sleep(20)
    assert(seen.toArray.count(_ == expected) >= 4, seen)
  }

  test("a plan too deep to be read has no fingerprint, and nothing is thrown") {
    val fault = new org.apache.spark.sql.catalyst.plans.logical.OneRowRelation {
      override def nodeName: String = throw new StackOverflowError
    }
    assert(Fingerprint.of(fault) == null)
  }

  test("every Spark minor gives these queries these fingerprints") {
    val known = Seq(
      "SELECT id FROM sales WHERE price BETWEEN 1 AND 2 AND note = 3" -> "14aab7253868",
      """SELECT s.item, sum(s.price * (1 - 0.1)) AS revenue, avg(s.id), rank() OVER (ORDER BY count(*) DESC)
        |FROM sales s LEFT JOIN returns r ON s.id = r.item AND r.day >= s.day
        |WHERE s.item NOT IN (SELECT item FROM returns WHERE day IS NOT NULL)
        |GROUP BY s.item HAVING sum(s.price) > (SELECT avg(price) FROM big_sales)
        |ORDER BY revenue DESC LIMIT 10""".stripMargin -> "3a35452b3f6b",
      """WITH x AS (SELECT item, day, nvl(note, 'none') AS n FROM sales)
        |SELECT a.item, a.n, CASE WHEN exists(array(a.item), i -> i > 1) THEN upper(b.n) ELSE NULLIF(b.n, 'z') END
        |FROM x a JOIN x b ON a.item = b.item AND year(a.day) = year(b.day)""".stripMargin -> "8e9e3be75e16"
    )
    assert(known.map(k => Fingerprint.sha256(of(k._1)).take(12)) == known.map(_._2))
  }
}

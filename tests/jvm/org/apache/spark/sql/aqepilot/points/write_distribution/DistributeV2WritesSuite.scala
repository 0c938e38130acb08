package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.{BeforeAndAfterAll, BeforeAndAfterEach}

import io.aqepilot.AqePilotExtension

/** Writes to tables of the DataSource V2 interface: rows as plain Spark's, rebalanced where the table leaves it to Spark. */
class DistributeV2WritesSuite extends AnyFunSuite with BeforeAndAfterAll with BeforeAndAfterEach {

  private val Tasks = 6

  private lazy val spark = SparkSession.builder().master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    .config("spark.sql.catalog.memory", classOf[MemoryCatalog].getName)
    .config("spark.aqepilot.ask.deadline", "20s")
    .withExtensions(new AqePilotExtension()(_))
    .getOrCreate()

  override def beforeAll(): Unit =
    spark.range(0, 600, 1, Tasks).selectExpr("id AS n", "id % 3 AS p").createOrReplaceTempView("t")

  override def beforeEach(): Unit = plainly()

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private def plainly(): Unit = spark.conf.unset("spark.aqepilot.policies")

  private def use(text: String): Unit = {
    spark.conf.set("spark.aqepilot.policy.test.write_distribution", text)
    spark.conf.set("spark.aqepilot.policies", "test")
  }

  private def table(name: String): MemoryTable =
    spark.sessionState.catalogManager.catalog("memory").asInstanceOf[MemoryCatalog]
      .loadTable(Identifier.of(Array.empty, name)).asInstanceOf[MemoryTable]

  private def make(name: String, words: String = "PARTITIONED BY (p)"): MemoryTable = {
    spark.sql(s"DROP TABLE IF EXISTS memory.$name")
    spark.sql(s"CREATE TABLE memory.$name (n BIGINT, p BIGINT) $words")
    table(name)
  }

  private def rows(name: String): Seq[String] = table(name).rows.map(_.row.mkString(" ")).sorted

  /** In how many tasks rows of a partition were written, added up. */
  private def parts(name: String): Int = table(name).rows.map(w => (w.task, w.row(1))).distinct.size

  private def asked(what: => Any): Seq[Row] = {
    def all = spark.sql("SELECT * FROM aqepilot_decisions() ORDER BY decision_id").collect().toSeq
    val before = all.size
    what
    spark.sparkContext.listenerBus.waitUntilEmpty()
    all.drop(before)
  }

  private def reasons(decisions: Seq[Row]): Seq[String] = decisions.map(_.getAs[String]("reason"))

  /** What is asked about a command with a policy that rebalances; its rows are plain Spark's. */
  private def decided(
      policy: String = "true",
      words: String = "PARTITIONED BY (p)",
      before: String = "INSERT INTO %s SELECT n + 1000, p + 1 FROM t"
  )(write: String => Any): Seq[Row] = {
    Seq("plain", "decided").foreach { name =>
      make(name, words)
      plainly()
      spark.sql(before.format(s"memory.$name"))
    }
    write("memory.plain")
    use(policy)
    val decisions = asked(write("memory.decided"))
    assert(rows("decided") === rows("plain"))
    decisions
  }

  private def inserted(query: String = "SELECT * FROM t")(name: String): DataFrame =
    spark.sql(s"INSERT INTO $name $query")

  private val ways: Seq[(String, String => Any)] = Seq(
    "INSERT" -> inserted(),
    "a static partition" -> (t => spark.sql(s"INSERT INTO $t PARTITION (p = 2) SELECT n FROM t")),
    "INSERT OVERWRITE" -> (t => spark.sql(s"INSERT OVERWRITE $t SELECT * FROM t WHERE p < 2")),
    "append" -> (t => spark.table("t").writeTo(t).append()),
    "overwrite" -> (t => spark.table("t").where("p = 1").writeTo(t).overwrite(col("p") === 1L)),
    "overwritePartitions" -> (t =>
      spark.table("t").where("p = 1").writeTo(t).overwritePartitions()
    ),
    "insertInto" -> (t => spark.table("t").write.insertInto(t)),
    "saveAsTable" -> (t => spark.table("t").write.mode("append").saveAsTable(t)),
    "CREATE TABLE AS SELECT" -> { t =>
      spark.sql(s"DROP TABLE $t")
      spark.sql(s"CREATE TABLE $t PARTITIONED BY (p) AS SELECT * FROM t")
    },
    "REPLACE TABLE AS SELECT" -> { t =>
      spark.sql(s"REPLACE TABLE $t PARTITIONED BY (p) AS SELECT * FROM t")
    }
  )

  ways.foreach { case (way, write) =>
    test(s"asked once, and rebalanced: $way") {
      val Seq(one) = decided()(write)
      assert(one.getAs[String]("reason") === "APPLIED", one)
      assert(one.getAs[String]("fate") === "adopted")
      assert(one.getAs[String]("final_strategy").startsWith("rebalance"))
      if (way != "a static partition") assert(parts("decided") < parts("plain"))
    }
  }

  test("a policy that answers null or false leaves the write as it is") {
    assert(reasons(decided("null")(inserted())) === Seq("NULL_ANSWER"))
    assert(parts("decided") === parts("plain"))
    val Seq(one) = decided("false")(inserted())
    assert(one.getAs[String]("fate") === "no_change")
    assert(parts("decided") === parts("plain"))
  }

  private val left = Seq(
    "a distribution by hash" -> "PARTITIONED BY (p) TBLPROPERTIES ('distribution' = 'clustered')",
    "a distribution by range" -> "PARTITIONED BY (p) TBLPROPERTIES ('distribution' = 'ordered')",
    "an order beside the partition" -> "PARTITIONED BY (p) TBLPROPERTIES ('ordering' = 'p,n')",
    "an order of rows" -> "TBLPROPERTIES ('ordering' = 'p')"
  )

  left.foreach { case (what, words) =>
    test(s"a table that requires $what is left to Spark") {
      assert(reasons(decided(words = words)(inserted())) === Seq("SOURCE_DISTRIBUTION"))
      assert(parts("decided") === parts("plain"))
    }
  }

  private val sorted = "PARTITIONED BY (p) TBLPROPERTIES ('ordering' = 'p')"

  test(
    "a table whose writer takes one partition after another has its rows sorted above the rebalance"
  ) {
    val Seq(one) = decided(words = sorted)(inserted())
    assert(one.getAs[String]("fate") === "adopted")
    assert(parts("decided") < parts("plain"))
    val Seq(evenly) = decided("named_struct('rebalance', true, 'columns', array())", sorted) {
      inserted()
    }
    assert(evenly.getAs[String]("fate") === "adopted")
  }

  test(
    "rows that come sorted as such a table requires are left to Spark, which does not sort them"
  ) {
    val decisions =
      decided(words = sorted)(inserted("SELECT 7L AS n, id AS p FROM range(0, 90, 1, 4)"))
    assert(reasons(decisions) === Seq("SOURCE_DISTRIBUTION"))
  }

  test("the author of a write may have its rows as they are") {
    val decisions = decided() { name =>
      spark.table("t").writeTo(name).option("Use-Table-Distribution-And-Ordering", "false").append()
    }
    assert(reasons(decisions) === Seq("SOURCE_DISTRIBUTION"))
  }

  test("a table that does not say what it requires is not asked about") {
    assert(decided(words =
      "PARTITIONED BY (p) TBLPROPERTIES ('silent' = 'true')"
    )(inserted()) === Nil)
    assert(asked(spark.table("t").write.format("noop").mode("overwrite").save()) === Nil)
  }

  test("a table that is partitioned by functions is distributed by its partition columns, if any") {
    val Seq(none) = decided(words = "PARTITIONED BY (bucket(4, n))")(inserted())
    assert(none.getAs[String]("reason") === "UNSUITABLE_COLUMN")
    assert(none.getAs[String]("detail").contains("bucket(4, n)"))
    val Seq(both) = decided(words = "PARTITIONED BY (p, bucket(4, n))")(inserted())
    assert(both.getAs[String]("final_strategy") === "rebalance by p")
  }

  private val columns = Seq(
    ("", "PARTITIONED BY (p)", "GUARD_OPEN_FILES"),
    ("'n'", "PARTITIONED BY (p)", "GUARD_OPEN_FILES"),
    ("'p', 'n'", "PARTITIONED BY (p)", "GUARD_OPEN_FILES"),
    ("'n'", "PARTITIONED BY (bucket(4, n))", "GUARD_OPEN_FILES"),
    ("'P'", "PARTITIONED BY (p)", "APPLIED"),
    ("'n'", "", "APPLIED"),
    ("'n'", sorted, "APPLIED")
  )

  columns.foreach { case (names, words, reason) =>
    test(
      s"no task gets rows of any partition where all their files are open: by ($names), $words"
    ) {
      val policy = s"named_struct('rebalance', true, 'columns', array($names))"
      assert(reasons(decided(policy, words)(inserted())) === Seq(reason))
    }
  }

  private val queries = Seq(
    "SELECT /*+ REPARTITION(3) */ * FROM t" -> "USER_REPARTITION",
    "SELECT * FROM t SORT BY n" -> "USER_SORT",
    "SELECT * FROM t ORDER BY n LIMIT 60" -> "USER_SORT",
    "SELECT DISTINCT 1L AS n, 2L AS p FROM (SELECT * FROM t LIMIT 60)" -> "LIMITED_ROWS",
    "SELECT n + floor(rand(3)) AS n, p FROM t" -> "NOT_DETERMINISTIC"
  )

  queries.foreach { case (query, reason) =>
    test(s"left to Spark: $query") {
      assert(reasons(decided()(inserted(query))) === Seq(reason))
    }
  }

  test("a LIMIT that the scan takes over is one") {
    make("source")
    spark.sql("INSERT INTO memory.source SELECT * FROM t")
    val decisions = decided()(inserted("SELECT * FROM memory.source LIMIT 60"))
    assert(reasons(decisions) === Seq("LIMITED_ROWS"))
  }

  test("EXPLAIN tells the rebalance") {
    make("decided")
    use("true")
    def plan = spark.sql("EXPLAIN INSERT INTO memory.decided SELECT * FROM t").head().getString(0)
    assert(plan.contains("REBALANCE_PARTITIONS_BY_COL"))
    plainly()
    assert(!plan.contains("REBALANCE"))
  }

  test("the facts of a write") {
    val policy =
      """CASE WHEN write.command = 'OverwritePartitionsDynamic' AND write.mode = 'OVERWRITE'
      AND write.overwrites_dynamically AND write.table = 'memory.decided'
      AND write.partition_columns = array('p') AND write.dynamic_columns = array('p')
      AND write.transforms = array('bucket(4, n)') AND write.static_partitions IS NULL
      AND write.num_buckets IS NULL AND write.max_concurrent_writers IS NULL
      AND write.required_distribution IS NULL AND size(write.required_ordering) = 0
      AND input.num_tasks = 6 AND size(write.constant_columns) = 0 THEN true END"""
    val decisions = decided(policy, "PARTITIONED BY (p, bucket(4, n))") { name =>
      spark.table("t").where("p = 1").writeTo(name).overwritePartitions()
    }
    assert(reasons(decisions) === Seq("APPLIED"), decisions)
  }
}

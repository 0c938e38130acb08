package org.apache.spark.sql.aqepilot.facts

import java.nio.file.Files

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  Join,
  LogicalPlan,
  OneRowRelation
}
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

class SignatureSuite extends AnyFunSuite with BeforeAndAfterAll {
  private val folder =
    Files.createTempDirectory("aqepilot-signature").toUri.toString.stripSuffix("/")
  private lazy val spark = SparkSession.builder().master("local[1]")
    .config("spark.ui.enabled", "false").config("spark.sql.warehouse.dir", s"$folder/warehouse")
    .getOrCreate()

  override def beforeAll(): Unit =
    Seq(
      "sales (id BIGINT, item INT, shop INT, price DECIMAL(7,2), sold DATE, note STRING, day INT) " +
        "USING parquet PARTITIONED BY (day)",
      "items (item INT, brand STRING, parent INT) USING parquet",
      "shops (shop INT, town STRING, opened TIMESTAMP) USING parquet",
      "days (number INT, quarter STRING) USING parquet"
    ).foreach(t => spark.sql(s"CREATE TABLE $t"))

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  // A DataFrame says its query execution in Spark 3.5 and, being classic, in Spark 4.
  private def optimised(df: DataFrame): LogicalPlan =
    df.getClass.getMethod("queryExecution").invoke(df).asInstanceOf[QueryExecution].optimizedPlan

  private def plan(sql: String): LogicalPlan = optimised(spark.sql(sql))

  private def same(plan: LogicalPlan) = Signature.text(plan, keepsLiterals = true)
  private def shape(plan: LogicalPlan) = Signature.text(plan, keepsLiterals = false)

  private def equal(plans: LogicalPlan*): Unit = plans.tail.foreach { p =>
    assert(same(p) === same(plans.head))
    assert(shape(p) === shape(plans.head))
    assert(Signature.of(p) === Signature.of(plans.head))
  }

  private def alike(queries: String*): Unit = equal(queries.map(plan): _*)

  private def differ(queries: String*): Unit = {
    val texts = queries.map(q => same(plan(q)))
    assert(texts.distinct.size == texts.size, texts.mkString("\n---\n"))
  }

  /** The same shape, and not the same. */
  private def onlyShape(queries: String*): Unit = {
    differ(queries: _*)
    assert(queries.map(q => shape(plan(q))).distinct.size == 1)
  }

  private val joined =
    "FROM sales s JOIN items i ON s.item = i.item JOIN shops p ON p.shop = s.shop WHERE i.brand = 'x' AND s.price > 5"

  test("the order of inner joins, the sides of an equality and where a filter stands do not count") {
    alike(
      s"SELECT * $joined",
      "SELECT * FROM shops p JOIN sales s ON s.shop = p.shop AND 5 < s.price JOIN items i ON i.item = s.item AND i.brand = 'x'",
      "SELECT * FROM items i JOIN (SELECT shop, item, price FROM sales WHERE price > 5) s ON s.item = i.item, " +
        "shops p WHERE p.shop = s.shop AND 'x' = i.brand",
      "SELECT /*+ BROADCAST(s), REPARTITION(7) */ p.town, s.id " + joined + " ORDER BY s.id"
    )
  }

  test("relations of a join are told apart by what they are and by what joins them, in any order") {
    def relations(plan: LogicalPlan): (Seq[LogicalPlan], Seq[Expression]) = plan match {
      case Join(left, right, _, condition, _) =>
        val (l, r) = (relations(left), relations(right))
        (l._1 ++ r._1, l._2 ++ r._2 ++ condition)
      case p if p.children.size == 1 && p.exists(_.isInstanceOf[Join]) =>
        relations(p.children.head)
      case p => (Seq(p), Nil)
    }
    def names(sql: String) = {
      val (all, conditions) = relations(plan(sql))
      Signature.within(all, conditions)
    }
    val twice = "JOIN days d ON d.number = s.day JOIN days e ON e.number = s.item"
    val first = names(s"SELECT * FROM sales s JOIN shops p ON p.shop = s.shop $twice")
    val second = names(
      s"SELECT * FROM shops p JOIN sales s ON s.shop = p.shop ${twice.split(" JOIN").reverse
          .mkString("JOIN ", " ", "").replace("JOIN JOIN", "JOIN").replace("d.number = s.day", "s.day = d.number")}"
    )
    assert(first.distinct.size === 4)
    assert(first.toSet === second.toSet)
    assert(first.indices.map(i => second.indexOf(first(i))).sorted === Seq(0, 1, 2, 3))
    val same = names("SELECT * FROM days a CROSS JOIN days b CROSS JOIN days c")
    assert(same.distinct.size === 3)
  }

  test("projections, sorts, repartitions, hints and pruned columns do not count") {
    alike(
      "SELECT * FROM sales WHERE price > 5",
      "SELECT id AS a FROM sales WHERE price > 5",
      "SELECT id + 1, upper(note) FROM sales WHERE price > 5 ORDER BY 1",
      "SELECT /*+ REPARTITION(3, id) */ id FROM sales WHERE price > 5",
      "SELECT /*+ REBALANCE */ id FROM sales WHERE price > 5"
    )
    alike(
      "SELECT s.id, i.brand FROM (SELECT id, item + 1 AS k FROM sales) s JOIN items i ON s.k = i.item",
      "SELECT i.brand FROM items i JOIN sales s ON i.item = s.item + 1"
    )
  }

  test("a filter's literal counts for the same, not for the shape") {
    onlyShape("SELECT * FROM sales WHERE price > 5", "SELECT * FROM sales WHERE price > 6")
    onlyShape(
      s"SELECT * $joined",
      s"SELECT * ${joined.replace("'x'", "'y'")}"
    )
    onlyShape(
      "SELECT * FROM sales WHERE item IN (1, 2, 3)",
      "SELECT * FROM sales WHERE item IN (4, 5, 6, 7)",
      s"SELECT * FROM sales WHERE item IN (${(1 to 50).mkString(", ")})"
    )
    alike(
      "SELECT * FROM sales WHERE item IN (1, 2, 3)",
      "SELECT * FROM sales WHERE item IN (3, 1, 2)"
    )
  }

  test(
    "literals of conditions on nothing but dates, timestamps and partition columns do not count"
  ) {
    alike(
      "SELECT * FROM sales WHERE sold = DATE '2026-11-20' AND price > 5",
      "SELECT * FROM sales WHERE sold = DATE '2026-11-21' AND price > 5"
    )
    alike("SELECT * FROM sales WHERE day = 20261120", "SELECT * FROM sales WHERE day = 20261121")
    alike(
      "SELECT * FROM shops WHERE opened > TIMESTAMP '2026-11-20 00:00:00'",
      "SELECT * FROM shops WHERE opened > TIMESTAMP '2026-11-21 00:00:00'"
    )
    alike(
      "SELECT * FROM (SELECT *, date_add(sold, 1) AS n FROM sales) WHERE n > DATE '2026-11-20'",
      "SELECT * FROM (SELECT *, date_add(sold, 1) AS n FROM sales) WHERE n > DATE '2026-11-25'"
    )
    onlyShape(
      "SELECT * FROM sales WHERE sold = DATE '2026-11-20' OR item = 1",
      "SELECT * FROM sales WHERE sold = DATE '2026-11-20' OR item = 2"
    )
    differ(
      "SELECT * FROM sales WHERE sold = DATE '2026-11-20'",
      "SELECT * FROM sales WHERE sold > DATE '2026-11-20'",
      "SELECT * FROM sales"
    )
  }

  test("tables, conditions, grouping and kinds of joins count") {
    val join = "SELECT s.id FROM sales s"
    differ(
      "SELECT * FROM sales",
      "SELECT * FROM items",
      s"$join JOIN items i ON s.item = i.item",
      s"$join JOIN items i ON s.item = i.parent",
      s"$join JOIN items i ON s.item = i.item AND s.price > i.parent",
      s"$join JOIN shops i ON s.shop = i.shop",
      s"$join LEFT JOIN items i ON s.item = i.item",
      "SELECT i.brand FROM items i LEFT JOIN sales s ON s.item = i.item",
      s"$join LEFT SEMI JOIN items i ON s.item = i.item",
      s"$join LEFT ANTI JOIN items i ON s.item = i.item",
      s"$join FULL JOIN items i ON s.item = i.item",
      "SELECT item, count(*) FROM sales GROUP BY item",
      "SELECT shop, count(*) FROM sales GROUP BY shop",
      "SELECT item, shop, count(*) FROM sales GROUP BY item, shop",
      "SELECT count(*) FROM sales",
      "SELECT item, count(*) FROM sales GROUP BY ROLLUP(item)",
      "SELECT id FROM sales LIMIT 5",
      "SELECT id FROM sales LIMIT 6",
      "SELECT explode(split(note, ',')) FROM sales",
      "SELECT item FROM sales UNION ALL SELECT item FROM items"
    )
  }

  test("what an aggregate computes and the order of its keys do not count") {
    alike(
      "SELECT item, shop, sum(price) FROM sales GROUP BY item, shop",
      "SELECT count(id), shop FROM sales GROUP BY shop, item",
      "SELECT DISTINCT shop AS a, item AS b FROM sales"
    )
    alike(
      "SELECT item FROM sales UNION ALL SELECT item FROM items",
      "SELECT item FROM items UNION ALL SELECT item FROM sales"
    )
  }

  test("a right outer join is a left one from the other side") {
    alike(
      "SELECT * FROM sales s LEFT JOIN items i ON s.item = i.item AND i.brand = 'x'",
      "SELECT * FROM items i RIGHT JOIN sales s ON s.item = i.item AND i.brand = 'x'"
    )
  }

  test("two uses of a table are told apart by their conditions") {
    differ(
      "SELECT a.item FROM items a JOIN items b ON a.item = b.parent",
      "SELECT a.item FROM items a JOIN items b ON a.item = b.item",
      "SELECT a.item FROM items a JOIN items b ON a.item = b.parent AND b.brand = 'x'",
      "SELECT a.item FROM items a JOIN items b ON a.item = b.parent AND a.brand = 'x'"
    )
    alike(
      "SELECT a.item FROM items a JOIN items b ON a.item = b.parent",
      "SELECT b.item FROM items a JOIN items b ON b.item = a.parent"
    )
    val dated = (one: String, other: String) =>
      s"SELECT s.id FROM sales s JOIN days d ON s.item = d.number JOIN days e ON s.shop = e.number " +
        s"WHERE d.quarter = '$one' AND e.quarter = '$other'"
    differ(dated("Q1", "Q2"), dated("Q2", "Q1"))
    assert(shape(plan(dated("Q1", "Q2"))) === shape(plan(dated("Q2", "Q1"))))
    differ(
      "SELECT a.item FROM items a LEFT JOIN items b ON a.item = b.parent",
      "SELECT a.item FROM items a LEFT JOIN items b ON a.parent = b.item"
    )
    val ring = (last: String) =>
      s"SELECT a.item FROM items a JOIN items b ON a.item = b.parent JOIN items c ON b.item = c.parent AND $last"
    differ(ring("c.item = a.parent"), ring("c.brand = a.brand"))
  }

  test("an equality that follows from others does not count") {
    alike(
      "SELECT 1 FROM sales s JOIN items i ON s.item = i.item JOIN days d ON d.number = i.item",
      "SELECT 1 FROM sales s JOIN items i ON s.item = i.item JOIN days d ON d.number = s.item",
      "SELECT 1 FROM days d JOIN sales s ON d.number = s.item JOIN items i ON s.item = i.item AND i.item = d.number"
    )
  }

  test("a set of relations has the signature of each tree of their joins") {
    val p = plan(s"SELECT s.id, s.price, i.brand, p.town $joined")
    var relations = Seq.empty[LogicalPlan]
    var conditions = Seq.empty[Expression]
    p.foreach {
      case j: Join                               => conditions ++= j.condition
      case f: Filter if f.child.children.isEmpty => relations :+= f
      case _                                     =>
    }
    assert(relations.size === 3)
    assert(Signature.ofSet(relations, conditions) === Signature.of(p))
    assert(Signature.ofSet(relations.reverse, conditions.reverse) === Signature.of(p))
    assert(Signature.ofSet(relations.take(1), Nil) === Signature.of(relations.head))
    assert(Signature.ofSet(relations.take(2), conditions) !== Signature.of(p))
  }

  test("a shuffle, a partial aggregate and its shuffle have signatures of their own") {
    val aggregate =
      plan("SELECT item, count(*) FROM sales GROUP BY item").collectFirst { case a: Aggregate =>
        a
      }.get
    val keys = aggregate.child.output.take(1)
    val all = Seq(
      Signature.of(aggregate),
      Signature.of(aggregate.child),
      Signature.shuffled(aggregate.child, keys),
      Signature.shuffled(aggregate.child, Nil),
      Signature.shuffled(aggregate, aggregate.output.take(1)),
      Signature.partial(aggregate),
      Signature.partialShuffled(aggregate, keys)
    )
    assert(all.flatten.distinct.size === all.size)
  }

  test("runtime filters, dynamic pruning and IS NOT NULL do not count") {
    alike("SELECT item FROM sales WHERE item IS NOT NULL", "SELECT item FROM sales")
    spark.sql("CREATE OR REPLACE TEMP VIEW picked AS SELECT number FROM days WHERE quarter = 'Q1'")
    val query = "SELECT s.id FROM sales s JOIN picked d ON s.day = d.number"
    def pruned(on: Boolean) = {
      spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.enabled", on.toString)
      spark.conf.set(
        "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly",
        (!on).toString
      )
      spark.conf.set("spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio", "10")
      plan(query)
    }
    val (with1, without) = (pruned(true), pruned(false))
    assert(
      with1.toString.contains("dynamicpruning") && !without.toString.contains("dynamicpruning")
    )
    equal(with1, without)
  }

  test("what Spark cannot read has no signature, and nothing is thrown") {
    val fault = new OneRowRelation {
      override def nodeName: String = throw new StackOverflowError
    }
    assert(Signature.of(fault) === None)
  }

  test("a signature is 16 hexadecimal digits") {
    val all =
      Signature.of(plan("SELECT * FROM sales")).toSeq.flatMap(s => Seq(s.sameText, s.shapeText))
    assert(all.size === 2 && all.forall(_.matches("[0-9a-f]{16}")))
    assert(Signature.hex(-1) === "f" * 16 && Signature.hex(1) === "0" * 15 + "1")
  }

  test("a signature that was computed is kept as long as its plan") {
    val known = new WeakNodes[Object, String]
    val node = new Object
    var times = 0
    def asked(n: Object) = known(n) { times += 1; "x" }
    (1 to 3).foreach(_ => asked(node))
    assert(times === 1)
    (1 to 1000).foreach(_ => asked(new Object))
    val deadline = System.nanoTime() + 20L * 1000 * 1000 * 1000
    while (known.size > 500 && System.nanoTime() < deadline) { System.gc(); Thread.sleep(10) }
    assert(known.size <= 500 && node != null)
  }

  test("every Spark minor gives these queries these signatures") {
    val queries = Seq(
      s"SELECT s.id, i.brand, p.town $joined",
      "SELECT item, shop, sum(price) FROM sales WHERE sold > DATE '2026-11-20' GROUP BY item, shop",
      "SELECT s.id FROM sales s LEFT JOIN items i ON s.item = i.item AND i.brand LIKE 'a%'"
    )
    val all = queries.map(q => Signature.of(plan(q)).get).map(s => s.sameText + " " + s.shapeText)
    assert(
      all === Seq(
        "157cfff28d894faf 968d296ed3892d33",
        "99d5fa0f0fdb4d03 99d5fa0f0fdb4d03",
        "de0685c000784e8a 5a4d24ebf745e385"
      ),
      queries.map(q => same(plan(q))).mkString("\n")
    )
  }
}

package org.apache.spark.sql.aqepilot.plans.shuffles

import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.util.Utils
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** An operator that counts its canonical forms. */
private case class Canonical(child: SparkPlan, made: AtomicInteger) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def doCanonicalize(): SparkPlan = {
    made.incrementAndGet()
    super.doCanonicalize()
  }
  override protected def withNewChildInternal(newChild: SparkPlan): Canonical =
    copy(child = newChild)
}

class ShuffleShapesSuite extends AnyFunSuite with BeforeAndAfterAll {

  private lazy val spark = {
    val made = SparkSession
      .builder()
      .master("local[1]")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.adaptive.enabled", "false")
      .config("spark.sql.exchange.reuse", "false")
      .config("spark.sql.shuffle.partitions", "3")
      .config("spark.sql.autoBroadcastJoinThreshold", "-1")
      .getOrCreate()
    val folder = Utils.createTempDir()
    Seq("a", "b", "c").foreach { name =>
      val path = s"$folder/$name"
      made.range(20).selectExpr("id % 5 AS k", "id AS v").write.parquet(path)
      made.read.parquet(path).createOrReplaceTempView(name)
    }
    made.range(0, 9, 1, 3).selectExpr("id AS k", "id AS v").createOrReplaceTempView("no_files")
    made.sql("SELECT 1 AS k, 2 AS v").createOrReplaceTempView("rows")
    made
  }

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private def shuffles(sql: String): Seq[ShuffleExchangeExec] =
    spark.sql(sql).queryExecution.executedPlan.collect { case e: ShuffleExchangeExec => e }

  private val byKey = Seq("a", "b", "c", "no_files", "rows")
    .map(t => s"SELECT k, sum(v) AS v FROM $t GROUP BY k")

  private val queries = Seq(
    "SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k",
    "SELECT * FROM a x JOIN a y ON x.k = y.k",
    "SELECT * FROM a x JOIN a y ON x.k = y.v",
    "SELECT * FROM (SELECT k FROM a WHERE v > 3) x JOIN (SELECT k FROM a WHERE v > 4) y USING (k)",
    "SELECT * FROM a x JOIN b ON x.k = b.k JOIN a y ON b.v = y.v JOIN b z ON y.k = z.k",
    byKey.mkString(" UNION ALL "),
    (byKey ++ byKey).mkString(" UNION ALL "),
    s"SELECT k FROM (${byKey.head}) JOIN a USING (k) UNION ALL SELECT k FROM (${byKey.head})",
    "SELECT v, count(*) FROM (SELECT k, max(v) AS v FROM a GROUP BY k) GROUP BY v UNION ALL " +
      "SELECT k, max(v) FROM a GROUP BY k",
    "SELECT * FROM no_files x JOIN no_files y USING (k) JOIN rows USING (k) JOIN rows z USING (k)"
  )

  test(
    "two shuffles have the same number where their canonical forms are equal, and nowhere else"
  ) {
    var (equal, different) = (0, 0)
    queries.foreach { sql =>
      val all = shuffles(sql)
      assert(all.nonEmpty, sql)
      val number = new ShuffleShapes().numbering(all)
      for (x <- all; y <- all if x ne y) {
        val isEqual = x.canonicalized == y.canonicalized
        if (isEqual) equal += 1 else different += 1
        assert((number(x) == number(y)) === isEqual, s"$sql\n$x\n$y")
      }
    }
    assert(equal > 5 && different > 20)
  }

  test("a number means the same when the query is planned again") {
    queries.foreach { sql =>
      val shapes = new ShuffleShapes
      val plannings = Seq.fill(3) {
        val all = shuffles(sql)
        all.map(shapes.numbering(all))
      }
      plannings.foreach(numbers => assert(numbers === plannings.head, sql))
    }
  }

  test("a shuffle that was alone with its files keeps its number when another comes to them") {
    val shapes = new ShuffleShapes
    val alone = shuffles(byKey.head)
    val before = alone.map(shapes.numbering(alone))
    val both = shuffles(s"${byKey.head} UNION ALL SELECT v, max(k) FROM a GROUP BY v")
    val number = shapes.numbering(both)
    assert(number(both.head) === before.head)
    assert(number(both.last) !== before.head)
    val later = shuffles(byKey.head)
    assert(later.map(shapes.numbering(later)) === before)
  }

  test("only shuffles that read the same files get a canonical form") {
    def made(sql: String) = {
      val count = new AtomicInteger
      val all = shuffles(sql).map(e => e.copy(child = Canonical(e.child, count)))
      new ShuffleShapes().numbering(all)
      count.get
    }
    assert(made("SELECT * FROM a JOIN b ON a.k = b.k JOIN b z ON b.k = z.k") > 0)
    assert(made("SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k") === 0)
  }
}

package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.DynamicJoinSelectionPoint
import org.apache.spark.sql.aqepilot.policy.Asking
import org.apache.spark.sql.aqepilot.policy.sql.PolicyCompiler
import org.apache.spark.sql.aqepilot.run.PoliciesInForce
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{LongType, StructType}
import org.scalatest.funsuite.AnyFunSuite

class LazyRowSuite extends AnyFunSuite {

  /** A row of these values, each computed when it is read. */
  private def lazyRow(values: (() => Any)*): LazyRow =
    new LazyRow(values.map(value => (_: Any) => value()).toArray, null)

  private def partitions(n: Int): SQLConf = {
    val conf = new SQLConf
    conf.setConfString("spark.sql.shuffle.partitions", n.toString)
    conf
  }

  test("a value is computed when it is read, once") {
    var computed = 0
    val row = lazyRow(
      () => 1L,
      () => {
        computed += 1
        2L
      }
    )
    assert(row.getLong(0) === 1L && computed === 0)
    assert(row.getLong(1) === 2L && !row.isNullAt(1) && computed === 1)
  }

  test("values are computed under the settings that the row was made under, nested ones too") {
    val row = SQLConf.withExistingConf(partitions(7)) {
      lazyRow(
        () => SQLConf.get.numShufflePartitions,
        () => lazyRow(() => SQLConf.get.numShufflePartitions)
      )
    }
    SQLConf.withExistingConf(partitions(9)) {
      assert(row.getInt(0) === 7)
      assert(row.getStruct(1, 1).getInt(0) === 7)
      assert(SQLConf.get.numShufflePartitions === 9)
    }
  }

  test("a copy has every value and computes nothing more") {
    var computed = 0
    val row = lazyRow(
      () => null,
      () =>
        lazyRow { () =>
          computed += 1
          3L
        }
    )
    val copy = row.copy()
    assert(copy.isNullAt(0) && copy.getStruct(1, 1).getLong(0) === 3L && computed === 1)
    assert(!copy.getStruct(1, 1).isInstanceOf[LazyRow])
  }

  test("a fact that fails is not taken for a failure of the policy that reads it") {
    val facts = StructType.fromDDL("a BIGINT, b STRUCT<c: BIGINT>")
    def eval(text: String) = PolicyCompiler
      .compile(text, facts, LongType)
      .fold(e => fail(e.message), _.eval(lazyRow(() => 1L, () => lazyRow(() => sys.error("lost")))))
    assert(eval("a + 1") === Right(2L))
    assert(eval("a + 9223372036854775807L").isLeft)
    Seq("b.c", "a + b.c", "aggregate(array(1L, 2L), 0L, (x, y) -> x + y + b.c)").foreach { text =>
      assert(intercept[RuntimeException](eval(text)).getMessage === "lost", text)
    }
  }

  test("asking throws what a fact failed with, also one that no policy read") {
    val spark = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false")
      .getOrCreate().asInstanceOf[Sessions.Classic]
    try
      Seq("CASE WHEN query.execution_id = 1 THEN 'broadcast' END", "CAST(NULL AS STRING)").foreach {
        text =>
          val set = new SQLConf
          set.setConfString("spark.aqepilot.policies", "p")
          set.setConfString("spark.aqepilot.policy.p.dynamic_join_selection", text)
          val values =
            DynamicJoinSelectionPoint.facts.map(_ => () => throw new NoSuchMethodError("lost"))
          val thrown = intercept[NoSuchMethodError] {
            Asking.of(
              spark,
              PoliciesInForce.of(set),
              DynamicJoinSelectionPoint,
              None
            )(lazyRow(values: _*))
          }
          assert(thrown.getMessage === "lost", text)
      }
    finally {
      spark.stop()
      SparkSession.clearActiveSession()
      SparkSession.clearDefaultSession()
    }
  }
}

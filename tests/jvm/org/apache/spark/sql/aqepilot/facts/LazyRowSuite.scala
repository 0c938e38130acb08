package org.apache.spark.sql.aqepilot.facts

import java.lang.ref.WeakReference
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.points.dynamic_join_selection.DynamicJoinSelectionPoint
import org.apache.spark.sql.aqepilot.policy.Asking
import org.apache.spark.sql.aqepilot.policy.sql.PolicyCompiler
import org.apache.spark.sql.aqepilot.run.PoliciesInForce
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{LongType, StructType}
import org.scalatest.funsuite.AnyFunSuite

class LazyRowSuite extends AnyFunSuite {

  /** A row of these values, each computed when it is read. */
  private def lazyRow(values: (() => Any)*): LazyRow =
    new LazyRow(
      values.map(value => (_: Any) => value()).toArray,
      values.indices.toArray,
      null
    )

  private val fact = Fact.of[() => Long]

  /** Of a number that is read at once, and one that never changes. */
  private val facts = new Facts[() => Long](
    fact("now", "")(_()),
    fact.fixed("fixed", "")(_())
  )

  private val nested = new Facts[() => Long](fact.group("group", "", facts)(n => n))

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

  test("a settled row has all values but those that never change") {
    var computed = 0
    val row = nested.row { () =>
      computed += 1
      computed.toLong
    }
    row.settle()
    row.settle()
    assert(computed === 1 && row.getStruct(0, 2).getLong(0) === 1L && computed === 1)
    row.finish()
    assert(computed === 2 && row.getStruct(0, 2).getLong(1) === 2L && computed === 2)
  }

  test("a finished row holds nothing of what it was read from") {
    def row(value: AnyRef) = {
      val row = nested.row(() => value.hashCode.toLong)
      row.settle()
      row
    }
    var plan = new Object
    val known = new WeakReference(plan)
    val settled = row(plan)
    settled.finish()
    plan = null
    assert((1 to 50).exists { _ =>
      System.gc()
      known.get == null
    })
    assert(!settled.getStruct(0, 2).isNullAt(1))
  }

  test("a value that never changes and cannot be computed is null in the record") {
    val row = facts.row(() => sys.error("lost"))
    assert(intercept[FactFault](row.settle()).getCause.getMessage === "lost")
    row.finish()
    assert(row.isNullAt(0) && row.isNullAt(1))
  }

  test("no estimate is asked for when a row is finished") {
    val plan = LocalRelation(AttributeReference("a", LongType)())
    val estimates = Fact.of[LogicalPlan]
    val facts = new Facts[LogicalPlan](
      estimates("settled", "")(Estimates.of(_).sizeInBytes),
      estimates.fixed("late", "")(Estimates.of(_).sizeInBytes)
    )
    val row = facts.row(plan)
    row.settle()
    row.finish()
    assert(!row.isNullAt(0) && row.isNullAt(1))
    assert(!facts.row(plan).isNullAt(1))
  }

  test("two threads may read a row, and each value is computed once") {
    val computed = new AtomicLong
    val many = new Facts[() => Long](
      (1 to 100).map(i => fact.fixed(s"n$i", "")(_())): _*
    )
    for (_ <- 1 to 50) {
      val row = many.row(() => computed.incrementAndGet())
      val other = new Thread(() => row.finish())
      other.start()
      val read = (0 until 100).map(row.getLong)
      other.join()
      assert(read === (0 until 100).map(row.getLong))
    }
    assert(computed.get === 50 * 100)
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

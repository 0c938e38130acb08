package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.aqepilot.decision.SparkFaults
import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.dsl.plans._
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, Substring}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Union}
import org.apache.spark.sql.catalyst.plans.{
  ExistenceJoin,
  FullOuter,
  Inner,
  JoinType,
  LeftAnti,
  LeftOuter,
  LeftSemi,
  RightOuter
}
import org.scalatest.funsuite.AnyFunSuite

class FaultShapesSuite extends AnyFunSuite {

  private val a = $"a".string
  private val b = $"b".string
  private val c = $"c".string
  private val left = LocalRelation(a)
  private val right = LocalRelation(b, c)
  private def start(text: Expression): Expression = Substring(text, Literal(1), Literal(2))

  private def met(
      version: String,
      joinType: JoinType,
      key: Expression,
      condition: Option[Expression],
      sides: Seq[LogicalPlan] = Seq(left, right)
  ): Seq[String] =
    FaultShapes.met(
      JoinShape(joinType, Seq(key), condition, sides),
      SparkFaults.in(version).filterNot(_.shape == "CACHED_RELATION")
    )

  test("SPARK-46037: a left outer join with a condition, on the releases that have the fault") {
    assert(met("3.5.0", LeftOuter, b, Some(a < c)) === Seq("SPARK-46037"))
    assert(met("3.5.2-amzn-0", LeftOuter, b, Some(a < c)) === Seq("SPARK-46037"))
    assert(met("3.5.3", LeftOuter, b, Some(a < c)) === Nil)
    assert(met("3.5.0", LeftOuter, b, None) === Nil)
    Seq(Inner, RightOuter, FullOuter).foreach(joinType =>
      assert(met("3.5.0", joinType, b, Some(a < c)) === Nil)
    )
  }

  test(
    "SPARK-52873: a join for a first match whose condition reads what its keys are computed of"
  ) {
    val exists = ExistenceJoin($"e".boolean)
    Seq(LeftSemi, LeftAnti, exists).foreach { joinType =>
      assert(met("3.5.6", joinType, start(b), Some(a >= b)) === Seq("SPARK-52873"))
      assert(met("3.5.7", joinType, start(b), Some(a >= b)) === Nil)
      assert(met("4.0.0", joinType, start(b), Some(a >= b)) === Seq("SPARK-52873"))
      assert(met("3.5.6", joinType, b, Some(a >= b)) === Nil, "the key itself")
      assert(met("3.5.6", joinType, start(b), Some(a >= c)) === Nil, "another column")
      assert(
        met("3.5.6", joinType, start(b), Some(a >= b && a >= c)) === Nil,
        "another column, too"
      )
      assert(met("3.5.6", joinType, start(b), None) === Nil)
    }
    assert(met("3.5.6", Inner, start(b), Some(a >= b)) === Nil)
  }

  test("SPARK-46590: a union beneath that has a join") {
    val joined = Union(left.join(LocalRelation($"d".string)).select(a), LocalRelation($"f".string))
    assert(met("3.5.0", Inner, b, None, Seq(joined, right)) === Seq("SPARK-46590"))
    assert(met("3.5.1", Inner, b, None, Seq(joined, right)) === Nil)
    assert(met("3.5.0", Inner, b, None, Seq(Union(left, left), right)) === Nil)
  }

  test("where a release has no fault, nothing is looked at") {
    assert(FaultShapes.met(fail("looked at"), SparkFaults.in("4.3.0")) === Nil)
  }
}

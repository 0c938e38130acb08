package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.SparkConf
import org.apache.spark.sql.aqepilot.decision.{Guardrails, Guards}
import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference, EqualTo}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{
  Join,
  JoinHint,
  LocalRelation,
  LogicalPlan,
  Project
}
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

class JoinStateSuite extends AnyFunSuite {

  private def table(name: String) =
    LocalRelation(
      AttributeReference(s"${name}1", LongType)(),
      AttributeReference(s"${name}2", LongType)()
    )

  private def joined(left: LogicalPlan, right: LogicalPlan, key: Int = 0): Join = {
    val condition = EqualTo(left.output(key), right.output.head)
    val join = Join(left, right, Inner, Some(condition), JoinHint.NONE)
    JoinState.start(join, Prunes.Nothing)
    join
  }

  private def state(join: Join) = JoinState.of(join).get

  test("a word that was put into one query's plan costs the plans of no other query anything") {
    val (one, other) = (joined(table("a"), table("b")), joined(table("c"), table("d")))
    assert(!JoinState.isOverridden(one))
    state(one).overrideSide(state(one).left)
    assert(JoinState.isOverridden(one) && JoinState.isOverridden(Project(one.output, one)))
    assert(!JoinState.isOverridden(other))
  }

  private val guards = Guards(0, 0, 100, 3.0, 0, 0)

  private def fits(join: Join, bytes: Long) =
    StageTables.refusal(join, state(join), bytes, guards).isEmpty

  test("tables of joins on one key are taken together, whichever is asked about first") {
    val below = joined(table("a"), table("b"))
    val above = joined(below, table("c"))
    assert(fits(above, 60))
    StageTables.note(above, state(above), 60)
    assert(fits(below, 40) && !fits(below, 41))
    StageTables.note(below, state(below), 30)
    assert(fits(above, 70) && !fits(above, 71))
    StageTables.note(above, state(above), 0)
    assert(fits(below, 100))
  }

  test("tables of joins that a shuffle separates are not, and those of renamed keys are") {
    val below = joined(table("a"), table("b"))
    StageTables.note(below, state(below), 60)
    assert(fits(joined(below, table("c"), key = 1), 60))
    val renamed = Project(Seq(Alias(below.output.head, "k")()), below)
    assert(!fits(joined(renamed, table("c")), 60))
  }

  test("a hash table has the memory that the cache cannot take, on the heap and off it") {
    val conf = new SparkConf(false)
    val gib = 1L << 30
    val onHeap = Guardrails.guaranteedBytes(conf, 4 * gib)
    assert(onHeap === ((4 * gib - (300L << 20)) * 0.6 * 0.5).toLong)
    conf.set("spark.memory.storageFraction", "0.25")
    assert(math.abs(Guardrails.guaranteedBytes(conf, 4 * gib) - onHeap * 1.5) < 2)
    conf.set("spark.memory.offHeap.size", "1g")
    assert(math.abs(Guardrails.guaranteedBytes(conf, 4 * gib) - onHeap * 1.5) < 2)
    conf.set("spark.memory.offHeap.enabled", "true")
    assert(Guardrails.guaranteedBytes(conf, 4 * gib) === (gib * 0.75).toLong)
  }
}

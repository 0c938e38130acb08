package org.apache.spark.sql.aqepilot.facts

import java.util.concurrent.atomic.AtomicInteger

import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, Prunes}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, IsNotNull}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint, LeafNode, LogicalPlan}
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

/** A leaf that counts how often it is looked at. */
private case class Watched(name: String, output: Seq[Attribute], looks: AtomicInteger)
    extends LeafNode {
  override def nodeName: String = {
    looks.incrementAndGet()
    name
  }
}

class BeneathSuite extends AnyFunSuite {

  private def leaf(number: Int, looks: AtomicInteger) =
    Watched(s"t$number", Seq(AttributeReference(s"k$number", LongType)()), looks)

  private def filtered(leaf: LogicalPlan) = Filter(IsNotNull(leaf.output.head), leaf)

  /** A chain as the planner has it, topmost join first. */
  private def chain(joins: Int, looks: AtomicInteger): Seq[Join] = {
    val made = (1 to joins).scanLeft(filtered(leaf(0, looks)): LogicalPlan) { (left, number) =>
      Join(left, filtered(leaf(number, looks)), Inner, None, JoinHint.NONE)
    }.collect { case j: Join => j }
    made.foreach(JoinState.start(_, Prunes.Nothing))
    made.reverse
  }

  test(
    "the facts of all joins of a chain look at each leaf a number of times that its length does not change"
  ) {
    val looks = Seq(20, 200).map { joins =>
      val looks = new AtomicInteger
      chain(joins, looks).foreach { j =>
        Seq(j.left, j.right).foreach { side =>
          Tables.described(side)
          Tables.of(side)
          Beneath.filters(side)
          Beneath.joins(side)
        }
        JoinState.isReplan(j)
      }
      looks.get.toDouble / (joins + 1)
    }
    assert(looks.forall(_ < 6), looks)
  }

  test("what is beneath stands in plan order") {
    val top = chain(3, new AtomicInteger).head
    assert(Tables.described(top) === "t0+t1+t2+t3")
    assert(Beneath.filters(top).map(_.replaceAll("[^0-3]", "")) === Seq("0", "1", "2", "3"))
    assert(Beneath.joins(top) === 3 && Beneath.joins(top.right) === 0)
    assert(!JoinState.isReplan(top))
  }

  test(
    "a join whose sides were replaced is looked at anew, though it is the same join to policies"
  ) {
    val top = chain(2, new AtomicInteger).head
    assert(Tables.described(top) === "t0+t1+t2")
    val other = top.withNewChildren(Seq(top.left, leaf(7, new AtomicInteger))).asInstanceOf[Join]
    assert(JoinState.of(other) === JoinState.of(top))
    assert(Tables.described(other) === "t0+t1+t7")
    assert(Beneath.filters(other).size === 2)
    assert(Tables.described(top) === "t0+t1+t2")
  }
}

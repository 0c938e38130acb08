package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.points.join_reorder.{ChainReader, ReorderJoins}
import org.apache.spark.sql.catalyst.expressions.{And, AttributeReference, EqualTo, Rand}
import org.apache.spark.sql.catalyst.plans.logical.{
  BROADCAST,
  Distinct,
  Filter,
  HintInfo,
  Join,
  JoinHint,
  LocalRelation,
  LogicalPlan,
  Project
}
import org.apache.spark.sql.catalyst.plans.{Inner, LeftOuter}
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

class PlanIntegritySuite extends AnyFunSuite {

  private def relation(names: String*) =
    LocalRelation(names.map(name => AttributeReference(name, LongType)()))

  private def column(plan: LogicalPlan, name: String) = plan.output.find(_.name == name).get

  private val a = relation("k", "x")
  private val b = relation("k", "y")
  private val c = relation("k", "z")
  private val ab = EqualTo(column(a, "k"), column(b, "k"))
  private val bc = EqualTo(column(b, "k"), column(c, "k"))

  private def join(left: LogicalPlan, right: LogicalPlan, on: EqualTo) =
    Join(left, right, Inner, Some(on), JoinHint.NONE)

  private val top = Project(Seq(column(a, "x"), column(c, "z")), join(join(a, b, ab), c, bc))
  private val chain = ChainReader.read(top)._1.get

  private def faultOf(plan: LogicalPlan) = PlanIntegrity.fault(chain, plan)

  private def reordered = Project(top.output, join(join(c, b, bc), a, ab))

  test("a chain's relations and conditions are found in Spark's order") {
    assert(chain.relations === Seq(a, b, c))
    assert(chain.conditions === Seq(ab, bc))
  }

  test("another order of the same passes") {
    assert(faultOf(reordered) === None)
    Seq(Seq(0, 1, 2), Seq(2, 1, 0), Seq(1, 2, 0), Seq(0, 2, 1)).foreach { order =>
      val plan = chain.joined(order, (_, _) => ())
      assert(faultOf(Project(top.output, plan)) === None, order)
    }
  }

  test("other columns, or the same in another order, are a fault") {
    assert(faultOf(reordered.copy(projectList = top.output.reverse)) === Some("the output differs"))
    val renamed = top.output.map(_.withNullability(false))
    assert(faultOf(reordered.copy(projectList = renamed)) === Some("the output differs"))
  }

  test("a condition that is lost, or there twice, is a fault") {
    val lost = Project(top.output, Join(join(c, b, bc), a, Inner, None, JoinHint.NONE))
    assert(faultOf(lost) === Some("the conditions differ"))
    val twice = join(join(c, b, bc), a, ab).copy(condition = Some(And(ab, ab)))
    assert(faultOf(Project(top.output, twice)) === Some("the conditions differ"))
  }

  test("a relation that is lost, or there twice, is a fault") {
    val lost = Project(
      Seq(column(c, "z")),
      Filter(bc, Join(c, b, Inner, None, JoinHint.NONE))
    )
    assert(faultOf(lost).isDefined)
    val twice =
      Project(top.output, Join(join(join(c, b, bc), a, ab), a, Inner, None, JoinHint.NONE))
    assert(faultOf(twice).exists(_.startsWith("both sides of a join have")))
  }

  test("a column that is not there, and a node that is no part of a chain, are faults") {
    val early = Project(top.output, join(Join(c, b, Inner, Some(ab), JoinHint.NONE), a, bc))
    assert(faultOf(early).exists(_.endsWith("is not there")))
    assert(faultOf(Distinct(reordered)) === Some("a Distinct has come in"))
  }

  test("a chain goes not through a projection that hides a column which another relation has") {
    val shared = relation("k")
    val hiding = Project(
      Seq(column(a, "x")),
      join(
        join(a, shared, EqualTo(column(a, "k"), shared.output.head)),
        c,
        EqualTo(column(a, "k"), column(c, "k"))
      )
    )
    val again = Distinct(shared)
    val on = EqualTo(column(a, "x"), again.output.head)
    val outer = Join(
      Join(hiding, b, Inner, Some(EqualTo(column(a, "x"), column(b, "y"))), JoinHint.NONE),
      again,
      Inner,
      Some(on),
      JoinHint.NONE
    )
    val (found, ends) = ChainReader.read(outer)
    assert(found.map(_.relations) === Some(Seq(hiding, b, again)))
    assert(ends.map(_.reason.code) === Seq("SHARED_COLUMNS"))
    assert(ChainReader.read(hiding)._1.map(_.relations) === Some(Seq(a, shared, c)))
  }

  test("what is not deterministic, outer joins and hints end a chain") {
    val random = Filter(EqualTo(Rand(1), Rand(2)), join(a, b, ab))
    assert(ChainReader.read(join(random, c, bc))._1 === None)
    val outer = join(a, b, ab).copy(joinType = LeftOuter)
    assert(ChainReader.read(join(outer, c, bc))._1 === None)
    val hinted = join(a, b, ab).copy(hint = JoinHint(Some(HintInfo(Some(BROADCAST))), None))
    assert(ChainReader.read(join(hinted, c, bc))._1 === None)
  }

  test("a chain that is ordered is none any more") {
    val plan = Project(
      top.output,
      chain.joined(
        Seq(2, 1, 0),
        (j, _) => j.setTagValue(ReorderJoins.tag, Array(1L, 0L))
      )
    )
    assert(ChainReader.read(plan)._1 === None)
  }

  test("plans differ in hints only, or in more") {
    val plan = join(join(a, b, ab), c, bc)
    val hint = JoinHint(None, Some(HintInfo(Some(BROADCAST))))
    val hinted = plan.copy(left = join(a, b, ab).copy(hint = hint), hint = hint)
    assert(PlanIntegrity.differInHintsOnly(plan, hinted))
    assert(PlanIntegrity.differInHintsOnly(Distinct(plan), Distinct(hinted)))
    assert(!PlanIntegrity.differInHintsOnly(plan, hinted.copy(joinType = LeftOuter)))
    assert(!PlanIntegrity.differInHintsOnly(plan, hinted.copy(condition = None)))
    assert(!PlanIntegrity.differInHintsOnly(plan, hinted.copy(left = join(b, a, ab))))
    assert(!PlanIntegrity.differInHintsOnly(Distinct(plan), hinted))
    assert(!PlanIntegrity.differInHintsOnly(plan, Filter(ab, plan)))
  }
}

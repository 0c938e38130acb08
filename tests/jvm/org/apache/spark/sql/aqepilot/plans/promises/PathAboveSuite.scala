package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  UnknownPartitioning
}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.{SparkPlan, UnionExec}
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

/** As a data source says that its rows are partitioned. */
case object Stored extends Partitioning {
  override val numPartitions: Int = 4
}

class PathAboveSuite extends AnyFunSuite {

  private def source(partitioning: Partitioning) =
    new Source(AttributeReference("k", LongType)(), partitioning)

  private val part = source(UnknownPartitioning(6))
  private val groups = Groups(part.key, part)

  private def shuffles(plan: SparkPlan) = plan.collect { case e: ShuffleExchangeExec => e }

  private def ensured(plan: SparkPlan) = PathAbove.of(plan, part).get.ensured

  test("what lacks its distribution above the part gets a shuffle, and all beside is the same") {
    val beside = Groups(part.key, source(UnknownPartitioning(3)))
    ensured(UnionExec(Seq(groups, beside))) match {
      case Right(made) =>
        assert(shuffles(made).size == 1)
        assert(shuffles(made).head.child eq part)
        assert(made.children(1) eq beside)
      case Left(why) => fail(why)
    }
  }

  test("what stands above a shuffle is not looked at") {
    val shuffle = ShuffleExchangeExec(HashPartitioning(Seq(part.key), 4), groups)
    val plan = UnionExec(Seq(shuffle, source(Stored)))
    val top = Groups(part.key, plan)
    val made = ensured(top).toOption.get
    assert(shuffles(made).size == 2)
    assert(made.children.head.children(1) eq plan.children(1))
    assert(made.children.head.isInstanceOf[UnionExec])
  }

  test("rows that are partitioned as a data source says meet the part's in one stage: refused") {
    assert(ensured(UnionExec(Seq(groups, source(Stored)))).isLeft)
    assert(ensured(groups).isRight)
  }

  test("a part that is not in the plan") {
    assert(PathAbove.of(groups, source(Stored)).isEmpty)
  }
}

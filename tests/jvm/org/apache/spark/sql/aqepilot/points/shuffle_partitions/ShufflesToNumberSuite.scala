package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, IsNotNull}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  Join,
  JoinHint,
  LeafNode,
  LogicalPlan,
  Statistics
}
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution.LeafExecNode
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

private case class OfSize(bytes: BigInt, output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(bytes)
}

private case class Physical(output: Seq[Attribute]) extends LeafExecNode {
  override protected def doExecute(): RDD[InternalRow] = sys.error("is only planned")
}

class ShufflesToNumberSuite extends AnyFunSuite {

  private def table(bytes: Long): LogicalPlan = {
    val leaf = OfSize(bytes, Seq(AttributeReference("k", LongType)()))
    Filter(IsNotNull(leaf.output.head), leaf)
  }

  private def join(left: LogicalPlan, right: LogicalPlan) =
    Join(left, right, Inner, None, JoinHint.NONE)

  /** Its shuffle runs, so that Spark takes the estimate of its plan for its size. */
  private def running(plan: LogicalPlan): LogicalPlan = {
    val shuffle = ShuffleExchangeExec(SinglePartition, Physical(plan.output))
    LogicalQueryStage(plan, ShuffleQueryStageExec(0, shuffle, shuffle.canonicalized))
  }

  private def distinct(plan: LogicalPlan) = Aggregate(plan.output, plan.output, plan)

  private def inputBytes(plan: LogicalPlan) = ShufflesToNumber.inputBytes(plan)

  test("what a join reads is the sum of its sides, where Spark's estimate is their product") {
    val joined = join(table(1000), table(200))
    assert(joined.stats.sizeInBytes == 200000)
    assert(inputBytes(joined) == 1200)
    assert(inputBytes(distinct(join(joined, table(30)))) == 1230)
  }

  test("what a running stage with a join reads is the sum of the join's sides") {
    val stage = running(join(table(1000), table(200)))
    assert(stage.stats.sizeInBytes == 200000)
    assert(inputBytes(stage) == 1200)
    assert(inputBytes(distinct(stage)) == 1200)
    assert(inputBytes(join(distinct(stage), table(30))) == 1230)
    assert(inputBytes(running(join(stage, table(30)))) == 1230)
  }

  test("a running stage that joins nothing is taken for Spark's estimate of it") {
    val plan = distinct(running(table(1000)))
    assert(inputBytes(plan) == plan.stats.sizeInBytes)
  }
}

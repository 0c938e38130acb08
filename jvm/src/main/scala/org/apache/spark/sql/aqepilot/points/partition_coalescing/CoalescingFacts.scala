package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  DearRows,
  JoinSide,
  LazyRow,
  QueryFacts,
  ShuffleFacts,
  Tables
}
import org.apache.spark.sql.aqepilot.plans.promises.FinalStage
import org.apache.spark.sql.aqepilot.plans.shuffles.CoalesceGroup
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData
import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.execution.window.WindowExecBase
import org.apache.spark.sql.execution.{GenerateExec, SortExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** The facts of `partition_coalescing`, in the order of its schema.
  *
  * @param plan
  *   the stage's plan as Spark's rules left it
  * @param groups
  *   all groups of the stage
  */
final class CoalescingFacts(
    plan: SparkPlan,
    groups: Seq[CoalesceGroup],
    executionId: Option[Long]
) {

  private lazy val stageBytes: Long =
    groups.flatMap(_.stages).flatMap(_.mapStats).map(ShuffleFacts.of(_).total).sum

  private lazy val write: Option[StageWrite] = StageWrite.of(plan, executionId)

  def row(group: CoalesceGroup, sc: SparkContext, conf: SQLConf): LazyRow = LazyRow(
    () => QueryFacts.query(sc, executionId),
    () => CommonFacts.conf(conf),
    () => QueryFacts.cluster(sc),
    () => stage(group),
    () => shuffle(group),
    () => LazyRow(() => group.tasks, () => group.isLocalRead)
  )

  private def stage(group: CoalesceGroup): InternalRow = {
    lazy val above = CoalescingFacts.above(plan, group.ids)
    def has(what: SparkPlan => Boolean): Boolean = above.exists(what)
    LazyRow(
      () => UnsafeArrayData.fromPrimitiveArray(group.stages.map(_.id).toArray),
      () => group.stages.size,
      () => FinalStage.is(plan),
      () => group.isRebalance,
      () => has(_.isInstanceOf[SortExec]),
      () => has(_.isInstanceOf[BaseAggregateExec]),
      () => has(_.isInstanceOf[BaseJoinExec]),
      () => has(_.isInstanceOf[WindowExecBase]),
      () => has(_.isInstanceOf[GenerateExec]),
      () => has(DearRows.runsPython),
      () => has(DearRows.runsJvmFunction),
      () => has(DearRows.runsOnGroups),
      () => has(DearRows.loops),
      () => group.hasExplodingJoin,
      () => write.isDefined,
      () => write.flatMap(_.format).map(QueryFacts.string).orNull,
      () => if (group.stages.size == 1) group.stages.head.advisoryPartitionSize.orNull else null,
      () => stageBytes
    )
  }

  private def shuffle(group: CoalesceGroup): InternalRow = {
    lazy val sizes = group.stages.flatMap(_.mapStats) match {
      case Seq(only) => ShuffleFacts.of(only)
      case several   => ShuffleFacts.of(CoalescingFacts.sum(several.map(_.bytesByPartitionId)))
    }
    lazy val statistics: Seq[Statistics] = group.stages.map(_.getRuntimeStatistics)
    LazyRow(
      () => QueryFacts.strings(group.stages.flatMap(_.logicalLink).flatMap(Tables.of).distinct),
      () => group.stages.map(_.shuffle.numPartitions).max,
      () => group.stages.map(_.shuffle.numMappers).sum,
      () => sizes.array,
      () => sizes.bytes.length <= JoinSide.exactUpTo,
      () => sizes.total,
      () => sizes.max,
      () => sizes.median,
      () => sizes.nonEmptyRatio.getOrElse(null),
      () => {
        val rows = statistics.map(_.rowCount)
        if (rows.forall(_.isDefined)) JoinSide.toLong(rows.flatten.sum) else null
      },
      () => JoinSide.toLong(statistics.map(_.sizeInBytes).sum)
    )
  }
}

object CoalescingFacts {

  /** The operators of a stage that some of these shuffles' rows pass. */
  private def above(plan: SparkPlan, ids: Set[Int]): Seq[SparkPlan] = plan match {
    case s: ShuffleQueryStageExec => if (ids.contains(s.id)) Seq(s) else Nil
    case other                    =>
      val below = other.children.flatMap(above(_, ids))
      if (below.isEmpty) Nil else other +: below
  }

  /** Sizes by partition id, summed; a shuffle that has fewer partitions counts as empty in the rest. */
  private[aqepilot] def sum(sizes: Seq[Array[Long]]): Array[Long] = {
    val total = new Array[Long](sizes.map(_.length).max)
    sizes.foreach { bytes =>
      var i = 0
      while (i < bytes.length) {
        total(i) += bytes(i)
        i += 1
      }
    }
    total
  }
}

package org.apache.spark.sql.aqepilot.record

import java.util.{Collections, IdentityHashMap}

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.spark.engines.StandIn
import org.apache.spark.internal.config
import org.apache.spark.sql.aqepilot.facts.PhysicalSubPlan.KeepsRows
import org.apache.spark.sql.aqepilot.facts.{
  InputBytes,
  PartialRows,
  PhysicalSubPlan,
  ShuffleFacts,
  Signature
}
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  AdaptiveSparkPlanExec,
  QueryStageExec,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeLike,
  Exchange,
  ReusedExchangeExec,
  ShuffleExchangeLike
}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, ShuffledJoin}
import org.apache.spark.sql.execution.{BaseLimitExec, CollectLimitExec, CollectTailExec, SparkPlan}
import org.apache.spark.{MapOutputStatistics, SparkEnv}

import io.aqepilot.log.AqePilotSubPlan

/** What came of the sub-plans of a query that has ended well, read off the metrics of its final plan.
  *
  * Rows are counted where all of them were asked for: not beneath a limit, nor beneath a join that put out nothing or
  * whose other side may have been empty in some task, as far as the same stage goes. What was read from a cache is left
  * alone.
  *
  * @param stages
  *   of the query, all attempts
  */
final private[record] class SubPlans(stages: Seq[StageFigures]) {
  import SubPlans._

  private val measured = mutable.LinkedHashMap.empty[(String, Long), AqePilotSubPlan]
  private val seen = Collections.newSetFromMap(new IdentityHashMap[SparkPlan, java.lang.Boolean])

  /** At most [[MaxSubPlans]], those of the dearest stages first. */
  def of(finalPlan: SparkPlan): Seq[AqePilotSubPlan] = {
    visit(finalPlan, allRows = true, None)
    measured.values.toSeq
      .sortBy(s => (-s.taskMillis.getOrElse(0L), -s.bytes.orElse(s.rows).getOrElse(0L)))
      .take(MaxSubPlans)
  }

  /** @param allRows
    *   whether the node has put out all rows that it has
    * @param sizes
    *   of the shuffle's partitions, if the node is one
    */
  private def visit(
      node: SparkPlan,
      allRows: Boolean,
      sizes: Option[MapOutputStatistics]
  ): Unit = if (seen.add(node)) {
    node match {
      case adaptive: AdaptiveSparkPlanExec => visit(adaptive.executedPlan, allRows, None)
      case stage: ShuffleQueryStageExec    =>
        visit(stage.plan, allRows = true, if (stage.isMaterialized) stage.mapStats else None)
      case stage: QueryStageExec            => visit(stage.plan, allRows, None)
      case reused: ReusedExchangeExec       => visit(reused.child, allRows = true, sizes)
      case shuffle: ShuffleExchangeLike     => add(shuffle, sizes)
      case broadcast: BroadcastExchangeLike =>
        rows(broadcast).foreach(n => add(broadcast, n, broadcastBytes(broadcast, n)))
      case _: InMemoryTableScanExec =>
      case _                        => if (allRows) whole(node)
    }
    node match {
      case _: AdaptiveSparkPlanExec | _: QueryStageExec | _: ReusedExchangeExec =>
      case join: ShuffledJoin                                                   =>
        visit(join.left, allRows && isFull(join, join.right), None)
        visit(join.right, allRows && isFull(join, join.left), None)
      case join: BaseJoinExec => visitChildren(join, allRows && rows(join).exists(_ > 0))
      case _: BaseLimitExec | _: CollectLimitExec | _: CollectTailExec =>
        visitChildren(node, allRows = false)
      case _: Exchange => visitChildren(node, allRows = true)
      // It may be a limit, or a join that ends early.
      case _ if StandIn.is(node) => visitChildren(node, allRows = false)
      case _                     => visitChildren(node, allRows)
    }
    node.subqueries.foreach(visit(_, allRows = true, None))
  }

  private def visitChildren(node: SparkPlan, allRows: Boolean): Unit =
    node.children.foreach(visit(_, allRows, None))

  /** Whether a shuffled join has read all of a side, once: a task does not where the other side has no row for it, and
    * tasks that share a split partition of the other side each read it.
    */
  private def isFull(join: ShuffledJoin, other: SparkPlan): Boolean =
    !join.isSkewJoin && rows(join).exists(_ > 0) &&
      rowsThrough(other).exists(_ >= RowsForEachTask * join.outputPartitioning.numPartitions.toLong)

  private def whole(node: SparkPlan): Unit =
    for {
      plan <- node.getTagValue(SparkPlan.LOGICAL_PLAN_TAG)
      count <- rowsKept(node)
      signature <- Signature.of(plan)
    } put(
      signature,
      AqePilotSubPlan(
        "PLAN",
        signature.sameText,
        signature.shapeText,
        inputBytes = InputBytes.of(plan),
        rows = Some(count)
      )
    )

  private def add(exchange: Exchange, count: Long, bytes: Option[Long]): Unit =
    for {
      into <- PhysicalSubPlan.into(exchange)
      signature <- into.signature
    } put(
      signature,
      AqePilotSubPlan(
        "PLAN",
        signature.sameText,
        signature.shapeText,
        inputBytes = InputBytes.of(into.logical),
        rows = Some(count),
        bytes = bytes.filter(_ >= 0),
        inputRows = into match {
          case _: PartialRows => partialInput(exchange.child)
          case _              => None
        }
      )
    )

  private def add(shuffle: ShuffleExchangeLike, sizes: Option[MapOutputStatistics]): Unit = {
    val metric = (name: String) => shuffle.metrics.get(name)
    val written = metric("shuffleRecordsWritten").map(_.value)
    val bytes = metric("dataSize").map(_.value)
    written.foreach(add(shuffle, _, bytes))
    for {
      into <- PhysicalSubPlan.into(shuffle)
      signature <- into.shuffled(PhysicalSubPlan.keys(shuffle.outputPartitioning))
    } {
      val readers = metric("recordsRead").toSeq.flatMap { read =>
        val ids = stages.filter(_.added(read.id)).map(_.stage).toSet
        stages.filter(s => ids(s.stage))
      }
      def sum(figure: StageFigures => Long) =
        if (readers.isEmpty) None else Some(readers.map(figure).sum)
      val facts = sizes.map(ShuffleFacts.of)
      put(
        signature,
        AqePilotSubPlan(
          "SHUFFLE",
          signature.sameText,
          signature.shapeText,
          inputBytes = InputBytes.of(into.logical),
          rows = written,
          bytes = bytes.filter(_ >= 0),
          shuffleBytes = facts.map(_.total).orElse(metric("shuffleBytesWritten").map(_.value)),
          partitions = Some(shuffle.numPartitions),
          maxPartitionBytes = facts.map(_.max),
          medianPartitionBytes = facts.map(_.median),
          taskMillis = sum(_.taskMillis),
          readBytes = sum(_.readBytes),
          readRows = sum(_.readRows),
          spilledBytes = sum(_.spilledBytes),
          peakMemoryBytes = if (readers.isEmpty) None else Some(readers.map(_.peakMemoryBytes).max),
          failures = sum(s => if (s.failed) 1L else 0L).map(_.toInt)
        )
      )
    }
  }

  /** What Spark counts is the memory of a hash table, whose last page may be nearly empty: that page is left out. Below
    * it, Spark's estimate of a row's size says more.
    */
  private def broadcastBytes(broadcast: BroadcastExchangeLike, rows: Long): Option[Long] =
    broadcast.metrics.get("dataSize").map { size =>
      val estimate = EstimationUtils.getSizePerRow(broadcast.children.flatMap(_.output)) * rows
      estimate.max(size.value - pageBytes).min(Long.MaxValue).toLong
    }

  /** What went into the aggregate beneath a shuffle. */
  private def partialInput(node: SparkPlan): Option[Long] = node match {
    case KeepsRows(child) => partialInput(child)
    case aggregate        => aggregate.children.headOption.flatMap(rowsThrough)
  }

  /** A sub-plan is measured once; what it is known by twice is the larger. */
  private def put(signature: Signature, s: AqePilotSubPlan): Unit = {
    val key = (s.kind, signature.same)
    val before = measured.get(key)
    def larger(a: Option[Long], b: Option[Long]) = (a ++ b).reduceOption(math.max(_: Long, _: Long))
    measured.put(
      key,
      before match {
        case Some(b) if s.kind == "PLAN" =>
          b.copy(
            rows = larger(b.rows, s.rows),
            bytes = larger(b.bytes, s.bytes),
            inputRows = larger(b.inputRows, s.inputRows)
          )
        case Some(b) if b.bytes.exists(x => s.bytes.forall(_ < x)) => b
        case _                                                     => s
      }
    )
  }
}

private[record] object SubPlans {
  val MaxSubPlans = 500

  /** With so many rows for each task of a shuffled join, hardly a task has none. */
  private val RowsForEachTask = 8L

  /** Of a hash table in the driver, which is made as if it had all memory (`HashedRelation`). */
  private def pageBytes: Long =
    SparkEnv.get.conf.get(config.BUFFER_PAGESIZE).getOrElse(64L << 20)

  /** What a node counted itself. */
  private def rows(node: SparkPlan): Option[Long] =
    node.metrics.get("numOutputRows").map(_.value).filter(_ >= 0)

  /** The rows that a node puts out, counted by it or by what it keeps the rows of. */
  private def rowsKept(node: SparkPlan): Option[Long] = rows(node).orElse(node match {
    case KeepsRows(child) => rowsKept(child)
    case _                => None
  })

  /** The same through shuffles. */
  private def rowsThrough(node: SparkPlan): Option[Long] = node match {
    case read: AQEShuffleReadExec     => rowsThrough(read.child)
    case stage: QueryStageExec        => rowsThrough(stage.plan)
    case reused: ReusedExchangeExec   => rowsThrough(reused.child)
    case shuffle: ShuffleExchangeLike =>
      shuffle.metrics.get("shuffleRecordsWritten").map(_.value)
    case KeepsRows(child) => rows(node).orElse(rowsThrough(child))
    case other            => rows(other)
  }
}

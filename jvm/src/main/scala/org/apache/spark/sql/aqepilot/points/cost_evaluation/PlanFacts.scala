package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, Estimates, JoinSide, LazyRow, QueryFacts}
import org.apache.spark.sql.aqepilot.plans.joins.PruningFilters
import org.apache.spark.sql.aqepilot.spark.SparkCosts
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow}
import org.apache.spark.sql.execution.adaptive.{QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeLike,
  Exchange,
  ReusedExchangeExec,
  ShuffleExchangeLike
}
import org.apache.spark.sql.execution.joins.{
  BroadcastHashJoinExec,
  BroadcastNestedLoopJoinExec,
  CartesianProductExec,
  ShuffledHashJoinExec,
  SortMergeJoinExec
}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** What a plan that AQE compares still has to do, and what it reads: stages are not looked into.
  *
  * @param shuffles
  *   by what tells one from another in two plans of a query
  */
final case class PlanFacts(
    isCurrent: Boolean,
    shuffles: Seq[PlanFacts.ShuffleKey],
    broadcasts: Int,
    sortMergeJoins: Int,
    shuffledHashJoins: Int,
    broadcastHashJoins: Int,
    nestedLoopJoins: Int,
    skewJoins: Int,
    localSorts: Int,
    finishedShuffles: Int,
    knownBytes: Long,
    estimatedBytes: Option[Long],
    scans: Int,
    pruningFilters: Int
) {

  /** What of it would be read that another plan of the query leaves out, if something. */
  def readsMoreThan(that: PlanFacts): Option[String] =
    if (pruningFilters < that.pruningFilters)
      Some(
        s"partitions of ${that.pruningFilters - pruningFilters} scans would not be pruned by a broadcast"
      )
    else if (scans > that.scans)
      Some(s"${scans - that.scans} scans would run that the other plan does without")
    else None

  def row(current: PlanFacts): InternalRow = new GenericInternalRow(
    Array[Any](
      isCurrent,
      shuffles.size,
      shuffles.diff(current.shuffles).size,
      broadcasts,
      sortMergeJoins,
      shuffledHashJoins,
      broadcastHashJoins,
      nestedLoopJoins,
      skewJoins,
      localSorts,
      finishedShuffles,
      knownBytes,
      estimatedBytes.getOrElse(null),
      scans,
      pruningFilters
    )
  )
}

object PlanFacts {

  /** Expressions that a shuffle partitions by, and the leaves beneath it, in stages too. Where joins change
    * beneath a shuffle, it is still the same one.
    */
  type ShuffleKey = (String, Seq[Expression], Seq[String])

  def of(plan: SparkPlan, isCurrent: Boolean): PlanFacts = {
    val nodes = plan.collect { case p => p }
    def count(is: PartialFunction[SparkPlan, Unit]) = nodes.count(is.isDefinedAt)
    val finished = nodes.collect { case s: QueryStageExec if s.isMaterialized => s }
    PlanFacts(
      isCurrent,
      nodes.collect { case s: ShuffleExchangeLike => key(s) },
      count { case _: BroadcastExchangeLike => },
      count { case _: SortMergeJoinExec => },
      count { case _: ShuffledHashJoinExec => },
      count { case _: BroadcastHashJoinExec => },
      count { case _: BroadcastNestedLoopJoinExec | _: CartesianProductExec => },
      nodes.count(SparkCosts.isSkewJoin),
      count { case s: SortExec if !s.global => },
      finished.count(_.isInstanceOf[ShuffleQueryStageExec]),
      JoinSide.toLong(finished.map(_.getRuntimeStatistics.sizeInBytes).sum),
      estimated(nodes.collect { case e: Exchange => e }),
      nodes.count(PruningFilters.isScan),
      PruningFilters.of(plan).size
    )
  }

  private def key(shuffle: ShuffleExchangeLike): ShuffleKey = {
    val by = shuffle.outputPartitioning
    val expressions = by match {
      case e: Expression => e.children.map(_.canonicalized)
      case _             => Nil
    }
    (by.getClass.getSimpleName, expressions, leaves(shuffle.child).sorted)
  }

  private def leaves(plan: SparkPlan): Seq[String] = plan.collectLeaves().flatMap {
    case s: QueryStageExec     => leaves(s.plan)
    case r: ReusedExchangeExec => leaves(r.child)
    case leaf                  => Seq(leaf.nodeName)
  }

  private def estimated(exchanges: Seq[Exchange]): Option[Long] = {
    val links = exchanges.map(_.child.collectFirst {
      case p if p.logicalLink.isDefined => p.logicalLink.get
    })
    if (links.isEmpty || links.exists(_.isEmpty)) None
    else Some(JoinSide.toLong(links.flatten.map(Estimates.of(_).sizeInBytes).sum))
  }
}

/** The facts of `cost_evaluation` on one of the two plans that AQE compares, in the order of its schema. */
object CostFacts {

  def row(
      sc: SparkContext,
      conf: SQLConf,
      executionId: Option[Long],
      plan: PlanFacts,
      current: PlanFacts,
      cost: Option[Double],
      currentCost: Option[Double]
  ): LazyRow = {
    def ifCandidate(value: => Any): Any = if (plan.isCurrent) null else value
    LazyRow(
      () => QueryFacts.query(sc, executionId),
      () => CommonFacts.conf(conf),
      () => QueryFacts.cluster(sc),
      () => plan.row(current),
      () => ifCandidate(current.row(current)),
      () =>
        new GenericInternalRow(
          Array[Any](
            cost.getOrElse(null),
            ifCandidate(currentCost.getOrElse(null)),
            SparkCosts.countsLocalSorts(conf).getOrElse(null)
          )
        )
    )
  }
}

package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.aqepilot.spark.engines.StandIn
import org.apache.spark.sql.aqepilot.facts.Estimates
import org.apache.spark.sql.aqepilot.plans.joins.{JoinStrategy, PruningFilters}
import org.apache.spark.sql.aqepilot.spark.SparkCosts
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.adaptive.{QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeLike,
  Exchange,
  ReusedExchangeExec,
  ShuffleExchangeLike
}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}

/** What a plan that AQE compares still has to do, and what it reads: stages are not looked into.
  *
  * @param shuffles
  *   by what tells one from another in two plans of a query
  */
final private case class PlanWork(
    shuffles: Seq[PlanWork.ShuffleKey],
    broadcasts: Int,
    sortMergeJoins: Int,
    shuffledHashJoins: Int,
    broadcastHashJoins: Int,
    nestedLoopJoins: Int,
    skewJoins: Int,
    localSorts: Int,
    finishedShuffles: Int,
    knownBytes: BigInt,
    estimatedBytes: Option[BigInt],
    scans: Int,
    pruningFilters: Int
) {

  /** What of it would be read that another plan of the query leaves out, if something. */
  def readsMoreThan(that: PlanWork): Option[String] =
    if (pruningFilters < that.pruningFilters)
      Some(
        s"partitions of ${that.pruningFilters - pruningFilters} scans would not be pruned by a broadcast"
      )
    else if (scans > that.scans)
      Some(s"${scans - that.scans} scans would run that the other plan does without")
    else None
}

private object PlanWork {

  /** Expressions that a shuffle partitions by, and the leaves beneath it, in stages too. Where joins change
    * beneath a shuffle, it is still the same one.
    */
  type ShuffleKey = (String, Seq[Expression], Seq[String])

  def of(plan: SparkPlan): PlanWork = {
    val nodes = plan.collect { case p => p }
    def count(is: PartialFunction[SparkPlan, Unit]) = nodes.count(is.isDefinedAt)
    val strategies = nodes.flatMap(JoinStrategy.of)
    def joins(kind: String) = strategies.count(_.split(' ').head == kind)
    val finished = nodes.collect { case s: QueryStageExec if s.isMaterialized => s }
    PlanWork(
      shuffles = nodes.collect { case s: ShuffleExchangeLike => key(s) },
      broadcasts = count { case _: BroadcastExchangeLike => },
      sortMergeJoins = joins(JoinStrategy.SortMerge),
      shuffledHashJoins = joins(JoinStrategy.ShuffledHash),
      broadcastHashJoins = joins(JoinStrategy.BroadcastHash),
      nestedLoopJoins = joins(StandIn.NestedLoop) + joins(StandIn.Cartesian),
      skewJoins = nodes.count(SparkCosts.isSkewJoin),
      localSorts = nodes.count {
        case s: SortExec => !s.global
        case other       => StandIn.isLocalSort(other)
      },
      finishedShuffles = finished.count(_.isInstanceOf[ShuffleQueryStageExec]),
      knownBytes = finished.map(_.getRuntimeStatistics.sizeInBytes).sum,
      estimatedBytes = estimated(nodes.collect { case e: Exchange => e }),
      scans = nodes.count(PruningFilters.isScan),
      pruningFilters = PruningFilters.of(plan).size
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

  private def estimated(exchanges: Seq[Exchange]): Option[BigInt] = {
    val links = exchanges.map(_.child.collectFirst {
      case p if p.logicalLink.isDefined => p.logicalLink.get
    })
    if (links.isEmpty || links.exists(_.isEmpty)) None
    else Some(links.flatten.map(Estimates.of(_).sizeInBytes).sum)
  }
}

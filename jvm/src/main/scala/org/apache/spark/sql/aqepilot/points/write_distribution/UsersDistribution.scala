package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  LogicalPlan,
  RebalancePartitions,
  Repartition,
  RepartitionOperation,
  Sort,
  UnaryNode,
  Union,
  Window
}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.exchange.{
  ENSURE_REQUIREMENTS,
  REBALANCE_PARTITIONS_BY_COL,
  REBALANCE_PARTITIONS_BY_NONE,
  ShuffleExchangeLike,
  ShuffleOrigin
}
import org.apache.spark.sql.execution.{
  CoalesceExec,
  ExternalRDD,
  ExternalRDDScanExec,
  LogicalRDD,
  RDDScanExec,
  SortExec
}

/** The distribution or order of rows that a query's author asked for, where a write keeps it. */
private object UsersDistribution extends AdaptiveSparkPlanHelper {

  private val Rdd = "RDD"
  private val Sorted = "SORT"

  /** @param query
    *   optimised but for its scans
    */
  def in(query: LogicalPlan): Option[String] =
    sorted(query).orElse(distributed(query)).orElse(ofRdd(query))

  /** A sort whose order the rows still have: neither a join nor an aggregate keeps it. */
  private def sorted(plan: LogicalPlan): Option[String] = plan match {
    case s: Sort => Some(if (s.global) Sorted else "SORT_WITHIN_PARTITIONS")
    case _: Aggregate | _: Window | _: RepartitionOperation => None
    case r: LogicalRDD if r.outputOrdering.nonEmpty         => Some(Sorted)
    case m: InMemoryRelation                                => cached(m).headOption
    case u: UnaryNode                                       => sorted(u.child)
    case u: Union                                           => first(u.children)(sorted)
    case _                                                  => None
  }

  /** A repartition anywhere beneath: joins and aggregates keep one that suits them. */
  private def distributed(plan: LogicalPlan): Option[String] = plan match {
    case m: InMemoryRelation          => cached(m).find(word => word != Rdd && word != Sorted)
    case r: RebalancePartitions       => Some("REBALANCE")
    case r: Repartition if !r.shuffle => Some("COALESCE")
    case _: RepartitionOperation      => Some("REPARTITION")
    case other                        => first(other.children)(distributed)
  }

  /** Rows of an RDD, which a checkpoint makes, too, that Spark does not shuffle for certain: what partitions and what
    * order they were given cannot be seen, nor whether they are the same when they are computed again.
    */
  private def ofRdd(plan: LogicalPlan): Option[String] = plan match {
    case _: LogicalRDD | _: ExternalRDD[_]                  => Some(Rdd)
    case m: InMemoryRelation                                => cached(m).find(_ == Rdd)
    case _: Aggregate | _: Window | _: RepartitionOperation => None
    case other                                              => first(other.children)(ofRdd)
  }

  private def first(plans: Seq[LogicalPlan])(word: LogicalPlan => Option[String]) =
    plans.iterator.map(word).collectFirst { case Some(first) => first }

  /** What the author of a cached query asked for, from its top down. */
  private def cached(relation: InMemoryRelation): Seq[String] = {
    val words = collect(relation.cachedPlan) {
      case _: CoalesceExec                                                  => "COALESCE"
      case e: ShuffleExchangeLike if rebalances.contains(e.shuffleOrigin)   => "REBALANCE"
      case e: ShuffleExchangeLike if e.shuffleOrigin != ENSURE_REQUIREMENTS => "REPARTITION"
      case s: SortExec if s.global                                          => Sorted
      case _: RDDScanExec | _: ExternalRDDScanExec[_]                       => Rdd
    }
    if (relation.outputOrdering.nonEmpty) Sorted +: words else words
  }

  private val rebalances: Set[ShuffleOrigin] =
    Set(REBALANCE_PARTITIONS_BY_COL, REBALANCE_PARTITIONS_BY_NONE)
}

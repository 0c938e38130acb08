package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.facts.Estimates
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.{EqualTo, Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.optimizer.{CostBasedJoinReorder, JoinSelectionHelper}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LocalRelation, LogicalPlan}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning
import org.apache.spark.sql.internal.SQLConf

/** The relations of a chain that Spark may prune by a broadcast, in its own order.
  *
  * Spark's rule for that (PartitionPruning) comes later, when the scans of DataSource V2 are made and files are left
  * out by the query's own conditions. So this counts what could be pruned: any relation of a DataSource V2, and any
  * side that Spark might broadcast once it knows more.
  */
private object PrunedRelations extends PredicateHelper with JoinSelectionHelper {

  def in(chain: JoinChain, conf: SQLConf): Seq[PrunedRelation] = {
    val isOn = conf.dynamicPartitionPruningEnabled && conf.autoBroadcastJoinThreshold >= 0 &&
      (conf.exchangeReuseEnabled || !conf.dynamicPartitionPruningReuseBroadcastOnly)
    if (!isOn || !chain.relations.exists(_.exists(isPartitioned))) Nil
    else new PrunedRelations(chain, conf).all
  }

  /** Whether Spark could read a part of a leaf only. */
  private def isPartitioned(leaf: LogicalPlan): Boolean = leaf match {
    case LogicalRelationOf(files) => files.partitionSchema.nonEmpty
    case hive: HiveTableRelation  => hive.isPartitioned
    case _: DataSourceV2Relation  => true
    case _                        => false
  }

  private object LogicalRelationOf {
    def unapply(plan: LogicalPlan): Option[HadoopFsRelation] = plan match {
      case l: LogicalRelation => Some(l.relation).collect { case fs: HadoopFsRelation => fs }
      case _                  => None
    }
  }
}

final private class PrunedRelations(chain: JoinChain, conf: SQLConf)
    extends PredicateHelper
    with JoinSelectionHelper {
  import PrunedRelations.isPartitioned

  def all: Seq[PrunedRelation] = {
    val reorders = conf.cboEnabled && conf.joinReorderEnabled && !Estimates.isUnasked(chain.top)
    ofJoins(if (reorders) CostBasedJoinReorder(chain.top) else chain.top).distinct
  }

  private def ofJoins(plan: LogicalPlan): Seq[PrunedRelation] =
    if (chain.relations.exists(_ eq plan)) Nil
    else
      plan.children.flatMap(ofJoins) ++ (plan match {
        case Join(left, right, _, Some(condition), _) =>
          splitConjunctivePredicates(condition).flatMap {
            case EqualTo(a, b) =>
              Seq(
                (a, left, b, right),
                (b, left, a, right),
                (a, right, b, left),
                (b, right, a, left)
              )
                .flatMap { case (key, pruned, other, by) =>
                  if (isOf(key, pruned) && isOf(other, by)) relation(key, pruned, by) else None
                }
            case _ => Nil
          }
        case _ => Nil
      })

  private def isOf(key: Expression, side: LogicalPlan) =
    key.references.nonEmpty && key.references.subsetOf(side.outputSet)

  private def relation(key: Expression, pruned: LogicalPlan, by: LogicalPlan) =
    if (!isPrunable(key, pruned) || !isSelective(by) || !mayBroadcast(by)) None
    else {
      val own = positions(pruned)
      own
        .find(i => key.references.subsetOf(chain.relations(i).outputSet))
        .map { at =>
          val relation = chain.relations(at)
          PrunedRelation(at, positions(by), own - at, isLarge = !mayBroadcast(relation))
        }
    }

  private def positions(side: LogicalPlan): Set[Int] =
    chain.relations.indices.filter(i => side.exists(_ eq chain.relations(i))).toSet

  private def isPrunable(key: Expression, side: LogicalPlan): Boolean =
    PartitionPruning.getFilterableTableScan(key, side).isDefined ||
      findExpressionAndTrackLineageDown(key, side).exists(_._2.isInstanceOf[DataSourceV2Relation])

  /** What Spark takes for a side that leaves rows out; 4.2 and later also take rows that are there already. */
  private def isSelective(side: LogicalPlan): Boolean = !side.isStreaming && side.exists {
    case f: Filter                        => isLikelySelective(f.condition)
    case _: LocalRelation | _: LogicalRDD => true
    case _                                => false
  }

  /** Whether Spark might broadcast a side: what is partitioned may turn out to be smaller, once its filters are known. */
  private def mayBroadcast(side: LogicalPlan): Boolean =
    !conf.dynamicPartitionPruningReuseBroadcastOnly || side.exists {
      case Filter(_, child) => child.exists(isPartitioned)
      case leaf             => leaf.isInstanceOf[DataSourceV2Relation]
    } || Estimates.of(side).sizeInBytes <= conf.autoBroadcastJoinThreshold
}

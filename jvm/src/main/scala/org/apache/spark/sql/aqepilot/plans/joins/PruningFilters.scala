package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.catalyst.expressions.{BindReferences, ExprId}
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeExec, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.{
  BroadcastHashJoinExec,
  HashJoin,
  HashedRelationBroadcastMode
}
import org.apache.spark.sql.execution.{
  InSubqueryExec,
  LocalTableScanExec,
  SparkPlan,
  SubqueryAdaptiveBroadcastExec
}

/** The filters of dynamic partition pruning in an adaptive plan. */
private[aqepilot] object PruningFilters {

  /** Those on scans that are not run yet and that a broadcast of the plan feeds, as PlanAdaptiveDynamicPruningFilters
    * would find it.
    */
  def of(plan: SparkPlan): Set[ExprId] = {
    val open = plan.flatMap(_.expressions.flatMap(_.collect { case f: InSubqueryExec =>
      f
    })).flatMap { f =>
      f.plan match {
        case s: SubqueryAdaptiveBroadcastExec if s.onlyInBroadcast =>
          s.child match {
            case adaptive: AdaptiveSparkPlanExec => Some((f.exprId, s, adaptive))
            case _                               => None
          }
        case _ => None
      }
    }
    lazy val builds = nodes(plan).collect {
      case j: BroadcastHashJoinExec => if (j.buildSide == BuildLeft) j.left else j.right
    }
    open.collect {
      case (filter, side, adaptive) if builds.exists(_.sameResult(broadcast(side, adaptive))) =>
        filter
    }.toSet
  }

  /** Whether a node reads what is not the plan's own. */
  def isScan(node: SparkPlan): Boolean = node.children.isEmpty && (node match {
    case _: QueryStageExec | _: ReusedExchangeExec | _: LocalTableScanExec => false
    // EmptyRelationExec of 4.0 and later.
    case other => other.nodeName != "EmptyRelation"
  })

  private def broadcast(side: SubqueryAdaptiveBroadcastExec, adaptive: AdaptiveSparkPlanExec) = {
    val plan = adaptive.executedPlan
    val keys =
      BindReferences.bindReferences(HashJoin.rewriteKeyExpr(side.buildKeys), plan.output)
    BroadcastExchangeExec(HashedRelationBroadcastMode(keys), plan)
  }

  private def nodes(plan: SparkPlan): Seq[SparkPlan] = plan.flatMap {
    case s: QueryStageExec => s +: nodes(s.plan)
    case node              => Seq(node)
  }
}

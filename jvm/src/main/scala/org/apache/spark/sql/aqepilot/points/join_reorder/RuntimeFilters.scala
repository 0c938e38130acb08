package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.facts.Estimates
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  BloomFilterMightContain,
  ExprId,
  ScalarSubquery
}
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning

/** The runtime filters that Spark puts on one side of a join by rows of the other: Bloom filters and, in 3.5, semi-joins.
  *
  * Its rules for these come later. They are run here on copies, as they leave marks on plans, of Spark's own order and of
  * another.
  */
private object RuntimeFilters {

  /** What a filter is applied to, and what it is made of. */
  private case class RuntimeFilter(key: Set[String], applied: Set[ExprId], leaves: Set[ExprId])

  /** Why Spark would read more rows in an order, if it would. */
  def lost(chain: JoinChain, order: Seq[Int]): Option[String] =
    if (order == chain.relations.indices || Estimates.isUnasked(chain.top)) None
    else
      FailOpen("runtime filters", Option.empty[String]) {
        val sparks = filters(chain.top)
        if (sparks.isEmpty) None
        else {
          val decided =
            filters(chain.joined(order, (_, _) => ())).map(f => (f.applied, f.leaves)).toSet
          sparks
            .find(f => !decided((f.applied, f.leaves)))
            .map(f => s"Spark would have no runtime filter on ${f.key.toSeq.sorted.mkString(", ")}")
        }
      }

  private def filters(plan: LogicalPlan): Seq[RuntimeFilter] = {
    val before = semiJoins(plan)
    val after = InjectRuntimeFilter(PartitionPruning(plan.clone()))
    val blooms = after.flatMap(_.expressions.flatMap(_.collect {
      case BloomFilterMightContain(made: ScalarSubquery, key) =>
        filter(key.references.toSeq, made.plan)
    }))
    blooms ++ semiJoins(after).diff(before)
  }

  private def semiJoins(plan: LogicalPlan): Seq[RuntimeFilter] = plan.collect {
    case Join(left, right, LeftSemi, Some(condition), _) =>
      filter(condition.references.filter(left.outputSet.contains).toSeq, right)
  }

  private def filter(key: Seq[Attribute], made: LogicalPlan) = RuntimeFilter(
    key.map(_.name).toSet,
    key.map(_.exprId).toSet,
    made.collectLeaves().flatMap(_.output.map(_.exprId)).toSet
  )
}

package org.apache.spark.sql.aqepilot.plans.joins

import java.util.IdentityHashMap

import org.apache.spark.sql.aqepilot.decision.{JoinWords, Selection}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}
import org.apache.spark.sql.execution.SparkPlan

/** The filters of dynamic partition pruning that hang on the broadcast of a join's sides, by their expression ids.
  *
  * @param isInSide
  *   whether the join is part of such a side, or of Spark's second plan of it
  */
final private[aqepilot] case class Prunes(left: Set[Long], right: Set[Long], isInSide: Boolean) {

  /** Whether the filters that a side feeds are still to be evaluated: a scan that has begun is pruned already. */
  def isAwaited(join: Join, isLeft: Boolean): Boolean = {
    val (filters, pruned) = if (isLeft) (left, join.right) else (right, join.left)
    filters.nonEmpty && PruningSides.filters(pruned).exists(f => filters(f.exprId.id))
  }
}

private[aqepilot] object Prunes {
  val Nothing: Prunes = Prunes(Set.empty, Set.empty, isInSide = false)
}

/** Finds the sides of joins whose broadcast prunes what Spark reads.
  *
  * Spark's optimiser (PartitionPruning) puts a filter on the scan, with a second plan of the other side of the join.
  * When the scan's stage is made, PlanAdaptiveDynamicPruningFilters, or PlanDynamicPruningFilters without AQE, looks for
  * a broadcast hash join that builds from an equal plan; where there is none, all partitions are read. An
  * equal plan is one as Spark first plans it: a join that becomes a broadcast join later prunes nothing.
  *
  * A filter that Spark would evaluate by a query of its own otherwise (`onlyInBroadcast` is false) hangs on nothing.
  */
private[aqepilot] object PruningSides {

  /** On the nodes of such sides and of Spark's second plan of them, which it plans by itself and later. */
  private val tag = TreeNodeTag[Unit]("aqepilot.prunes")

  def isIn(node: LogicalPlan): Boolean = node.getTagValue(tag).nonEmpty

  /** Whether a physical plan is part of such a side. */
  def isIn(plan: SparkPlan): Boolean =
    plan.collectFirst { case p if p.logicalLink.isDefined => p.logicalLink.get }.exists(isIn(_))

  /** The filters on a plan that is not run yet. */
  def filters(plan: LogicalPlan): Seq[DynamicPruningSubquery] =
    if (!plan.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY)) Nil
    else plan.flatMap(_.expressions.flatMap(_.collect { case f: DynamicPruningSubquery => f }))

  /** Marks them in a plan that is about to be planned.
    *
    * @return
    *   which of its joins they are the sides of
    */
  def mark(root: LogicalPlan): Join => Prunes = {
    val marked = new IdentityHashMap[Join, Prunes]()
    if (
      root.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY) && root.conf.exchangeReuseEnabled
    )
      Sessions.active.foreach { session =>
        root.foreach {
          case join @ ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, left, right, _) =>
            def fed(side: LogicalPlan, keys: Seq[Expression], pruned: LogicalPlan) =
              filters(pruned).filter(f => f.onlyInBroadcast && isFedBy(f, side, keys))
            val (byLeft, byRight) = (fed(left, leftKeys, right), fed(right, rightKeys, left))
            if (byLeft.nonEmpty || byRight.nonEmpty) {
              val spark = JoinStrategy.plannedBySpark(session, join).headOption
              def live(fed: Seq[DynamicPruningSubquery], side: LogicalPlan, word: String) =
                if (!spark.flatMap(JoinStrategy.selection).contains(sends(word))) Set.empty[Long]
                else {
                  (side +: fed.map(_.buildQuery)).foreach(markAll)
                  fed.map(_.exprId.id).toSet
                }
              marked.put(
                join,
                Prunes(
                  live(byLeft, left, JoinWords.BuildLeft),
                  live(byRight, right, JoinWords.BuildRight),
                  isInSide = false
                )
              )
            }
          case _ =>
        }
      }
    join =>
      Option(marked.get(join)).getOrElse(Prunes.Nothing).copy(isInSide = isIn(join))
  }

  private def sends(side: String) = Selection(JoinWords.Broadcast, Some(side))

  /** Whether a filter was made for a join that has this side: by the keys, and the relations that are read. */
  private def isFedBy(
      filter: DynamicPruningSubquery,
      side: LogicalPlan,
      keys: Seq[Expression]
  ): Boolean = {
    def leaves(plan: LogicalPlan) = plan.collectLeaves().map(_.output.map(_.exprId).toSet)
    filter.buildKeys.nonEmpty &&
    filter.buildKeys.forall(k => keys.exists(_.semanticEquals(k))) &&
    leaves(side) == leaves(filter.buildQuery)
  }

  private def markAll(plan: LogicalPlan): Unit = plan.foreach(_.setTagValue(tag, ()))

  /** Writes down what such a part's shuffles or joins would be decided on, and are not. */
  def record(at: PointRule[_], tables: => Option[String]): Unit = at.undecided(
    Reason.ReadsMore,
    "a broadcast of this part prunes partitions, and must be as Spark plans it a second time",
    tables
  )
}

package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  Expression,
  ExpressionWithRandomSeed
}
import org.apache.spark.sql.catalyst.plans.logical.{
  BaseEvalPython,
  Filter,
  Generate,
  LeafNode,
  LogicalPlan,
  Project,
  RepartitionByExpression,
  Subquery,
  Union
}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}

/** Finds the parts of a query that several readers share and that give other rows each time they run, as `rand()`
  * does: a WITH query, or a DataFrame that is used again. Spark plans such a part once for each reader, and runs it
  * once because the plans are equal, so each reader has to be planned alike.
  *
  * A WITH query ends in a shuffle of its own, so no policy decides in it. A DataFrame ends in the shuffle that
  * reads it, if there is one, and what its partitions are depends on all that Spark does around it: no policy
  * decides anything about a query that uses one twice.
  */
private[aqepilot] object ReadTwice {

  /** On the nodes of such WITH queries, those of subqueries, too, which Spark plans by themselves and later. */
  private val ofWithQuery = TreeNodeTag[Unit]("aqepilot.read_twice")

  /** On all nodes of a query that uses such a DataFrame twice. */
  private val ofQuery = TreeNodeTag[Unit]("aqepilot.read_twice.query")

  /** On all nodes of what the optimiser may not order. */
  private val ofOrder = TreeNodeTag[Unit]("aqepilot.read_twice.order")

  /** Whether a node is in such a part. */
  def isIn(node: LogicalPlan): Boolean =
    node.getTagValue(ofWithQuery).nonEmpty || node.getTagValue(ofQuery).nonEmpty

  /** Whether a stage runs some of such a part; one that merely reads a WITH query does not. */
  def isIn(stage: SparkPlan): Boolean = isInQuery(stage) || stage.exists {
    case _: QueryStageExec | _: AQEShuffleReadExec => false
    case node                                      => node.logicalLink.exists(isIn(_))
  }

  /** Whether this is the plan of a query that uses such a DataFrame twice. */
  def isInQuery(plan: SparkPlan): Boolean =
    plan.exists(_.logicalLink.exists(_.getTagValue(ofQuery).nonEmpty))

  /** Whether no policy may order the joins of this plan. */
  def isKeptInOrder(plan: LogicalPlan): Boolean = plan.getTagValue(ofOrder).nonEmpty

  /** Marks them in a plan that is about to be planned. */
  def mark(root: LogicalPlan): Unit = if (!root.deterministic) {
    val (withQueries, others) = nodes(root).partition(isSharedQuery)
    withQueries.filter(isPart).foreach(markAll(_, ofWithQuery))
    if (isRepeated(others) || withQueries.exists(q => isRepeated(q.children.flatMap(nodes))))
      markAll(root, ofQuery)
  }

  /** Marks them in a plan that is being optimised. The optimiser sees a WITH query once, but a subquery by itself: whether
    * another part of the query is equal to it cannot be seen there, so each part that gives other rows each time counts
    * as read twice in a subquery, and beside one.
    */
  def markOptimised(root: LogicalPlan): Unit = if (!root.deterministic) {
    val all = nodes(root)
    val isBesideAnother = root.isInstanceOf[Subquery] || root.subqueriesAll.exists(!_.deterministic)
    val isKept = if (isBesideAnother) all.exists(isPart) else isRepeated(all)
    if (isKept) markAll(root, ofOrder)
  }

  /** A plan's nodes and its subqueries'; of a WITH query with several readers, the top alone. */
  private def nodes(plan: LogicalPlan): Seq[LogicalPlan] =
    if (isSharedQuery(plan)) Seq(plan)
    else plan +: (plan.children ++ plan.subqueries).flatMap(nodes)

  /** Whether a plan gives other rows each time, and which depends on how Spark runs what is below. */
  private def isPart(plan: LogicalPlan): Boolean = !plan.deterministic &&
    (isDependent(plan) || (plan.children ++ plan.subqueries).exists(isPart))

  /** Whether a node itself has `rand()` or the like, above what moves rows between partitions or changes their order. */
  private def isDependent(node: LogicalPlan): Boolean =
    node.expressions.exists(!_.deterministic) && node.exists(isMoving)

  private def isMoving(node: LogicalPlan): Boolean = node match {
    case _: LeafNode | _: Project | _: Filter | _: Generate | _: Union | _: BaseEvalPython => false
    case _                                                                                 => true
  }

  private def isRepeated(nodes: Seq[LogicalPlan]): Boolean =
    nodes.filter(isPart).groupBy(unnamed).values.exists(_.size > 1) || isOfOneSeed(nodes)

  /** A part whatever its columns are called: 3.5 gives one of two uses new names in a projection of its own. */
  private def unnamed(part: LogicalPlan): LogicalPlan = part match {
    case p: Project =>
      val columns = p.projectList.map {
        case Alias(column: Attribute, _) => column
        case other                       => other
      }
      p.copy(projectList = columns).canonicalized
    case other => other.canonicalized
  }

  /** Whether something has random numbers of a seed that another part has, too. Spark draws a seed for each
    * `rand()` that somebody writes, so a second one is another use of the same DataFrame or view, however different
    * the optimiser has left the two: each draws the same numbers for the same rows only where both are planned alike.
    */
  private def isOfOneSeed(nodes: Seq[LogicalPlan]): Boolean = {
    val times = nodes.flatMap(seeds).groupBy(identity).map { case (seed, all) => seed -> all.size }
    nodes.filter(isDependent).flatMap(seeds).exists(times(_) > 1)
  }

  private def seeds(node: LogicalPlan): Seq[Expression] = node.expressions.flatMap(_.collect {
    case random: ExpressionWithRandomSeed => random.canonicalized
  }).distinct

  private def markAll(plan: LogicalPlan, tag: TreeNodeTag[Unit]): Unit =
    plan.collectWithSubqueries { case node => node.setTagValue(tag, ()) }

  /** A WITH query with several readers, as `ReplaceCTERefWithRepartition` leaves it; another reader may be beyond this
    * plan, where this is a subquery's.
    */
  private def isSharedQuery(plan: LogicalPlan): Boolean = plan match {
    case r: RepartitionByExpression => r.partitionExpressions.isEmpty && r.optNumPartitions.isEmpty
    case _                          => false
  }

  /** Writes down what such a part's joins or shuffles would be decided on, and are not. */
  def record(at: PointRule[_], tables: => Option[String]): Unit = at.undecided(
    Reason.NonDeterministicCte,
    "a part of the query with rand() or the like is read several times",
    tables
  )
}

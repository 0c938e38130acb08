package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.{FailOpen, Sessions}
import org.apache.spark.sql.aqepilot.log.DecisionRecord
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  Expression,
  ExpressionWithRandomSeed
}
import org.apache.spark.sql.catalyst.plans.logical.{
  LogicalPlan,
  Project,
  RepartitionByExpression,
  Subquery
}
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, QueryStageExec}

import io.aqepilot.decision.{DecisionPoint, Reason}

/** Finds the parts of a query that several readers share and that give other rows each time they run, as `rand()`
  * does: a WITH query, or a DataFrame that is used again. Spark plans such a part once for each reader, and runs it
  * once because the plans are equal, so each reader has to be planned alike: no policy decides in it.
  */
private object ReadTwice {

  /** On the nodes of such parts, those of subqueries, too, which Spark plans by themselves and later. */
  private val tag = TreeNodeTag[Unit]("aqepilot.read_twice")

  def isIn(node: LogicalPlan): Boolean = node.getTagValue(tag).nonEmpty

  /** Whether a stage runs some of such a part; one that merely reads it does not. */
  def isIn(stage: SparkPlan): Boolean = stage.exists {
    case _: QueryStageExec | _: AQEShuffleReadExec => false
    case node                                      => node.logicalLink.exists(isIn(_))
  }

  /** Marks them in a plan that is about to be planned. */
  def mark(root: LogicalPlan): Unit = if (!root.deterministic) {
    val parts = partsOf(root)
    markAll(parts.filter(isSharedQuery) ++ repeated(root, parts))
  }

  /** Marks them in a plan that is being optimised. The optimiser sees a WITH query once, but a subquery by itself: whether
    * another part of the query is equal to it cannot be seen there, so each part that gives other rows each time counts
    * as read twice in a subquery, and beside one.
    */
  def markOptimised(root: LogicalPlan): Unit = if (!root.deterministic) {
    val parts = partsOf(root)
    val isBesideAnother = root.isInstanceOf[Subquery] || root.subqueriesAll.exists(!_.deterministic)
    markAll(if (isBesideAnother) parts else repeated(root, parts))
  }

  private def partsOf(root: LogicalPlan): Seq[LogicalPlan] = root.collectWithSubqueries {
    case p
        if !p.deterministic && p.containsAnyPattern(
          TreePattern.JOIN,
          TreePattern.AGGREGATE,
          TreePattern.REPARTITION_OPERATION
        ) => p
  }

  private def repeated(root: LogicalPlan, parts: Seq[LogicalPlan]): Iterable[LogicalPlan] =
    parts.groupBy(unnamed).values.filter(_.size > 1).flatten ++ ofOneSeed(root, parts)

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

  /** The parts with random numbers of a seed that another part has, too. Spark draws a seed for each `rand()` that
    * somebody writes, so a second one is another use of the same DataFrame or view, however different the optimiser
    * has left the two: each draws the same numbers for the same rows only where both are planned alike.
    */
  private def ofOneSeed(root: LogicalPlan, parts: Seq[LogicalPlan]): Seq[LogicalPlan] = {
    val shared = seedsIn(root).collect { case (seed, times) if times > 1 => seed }
    if (shared.isEmpty) Nil
    else parts.filter { part =>
      val own = seedsIn(part)
      shared.exists(own.get(_).contains(1))
    }
  }

  private def seedsIn(part: LogicalPlan): Map[Expression, Int] =
    part.collectWithSubqueries { case node => node.expressions }.flatten
      .flatMap(_.collect { case random: ExpressionWithRandomSeed => random.canonicalized })
      .groupBy(identity).map { case (seed, all) => seed -> all.size }

  private def markAll(parts: Iterable[LogicalPlan]): Unit =
    for (part <- parts) part.collectWithSubqueries { case node => node.setTagValue(tag, ()) }

  /** A WITH query with several readers, as `ReplaceCTERefWithRepartition` leaves it; another reader may be beyond this
    * plan, where this is a subquery's.
    */
  private def isSharedQuery(plan: LogicalPlan): Boolean = plan match {
    case r: RepartitionByExpression => r.partitionExpressions.isEmpty && r.optNumPartitions.isEmpty
    case _                          => false
  }

  /** What such a part's joins or shuffles would be decided on, and are not. */
  def record(session: Sessions.Classic, at: DecisionPoint, tables: => Option[String]): Unit =
    FailOpen("record", ()) {
      val detail = "a part of the query with rand() or the like is read several times"
      DecisionRecord.undecided(session, at, Reason.NonDeterministicCte, detail, tables)
    }
}

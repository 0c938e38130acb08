package org.apache.spark.sql.aqepilot.points.join_reorder

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.spark.sql.aqepilot.facts.OncePerNode
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.aqepilot.plans.promises.CanThrow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeSet,
  Expression,
  PredicateHelper
}
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint, LogicalPlan, Project}

/** Why a chain ends where it would go on by its joins' types.
  *
  * @param detail
  *   for a person
  */
final case class ChainEnd(reason: Reason, detail: String)

/** Finds the chain of joins at the top of a plan.
  *
  * Joins next to each other are one chain, also through filters and projections that only choose columns.
  * Outer and semi joins, hints, and conditions that are not deterministic end a chain: what is beyond is one
  * relation of it. Two things end it that Spark's own reordering by cost goes through:
  *
  *   - A condition that could throw stays on the join where Spark has it, and so on the rows that Spark evaluates
  *     it on.
  *   - A projection that hides a column of which another relation has the expression id. 3.5 gives two uses of a
  *     relation the same ids where a projection between them hides one (`DeduplicateRelations` compares what
  *     joins put out, and no more).
  */
object ChainReader {

  /** @return
    *   the chain, if it has three relations or more, and why it has no more
    */
  def read(plan: LogicalPlan): (Option[JoinChain], Seq[ChainEnd]) = plan match {
    case _: Join | _: Filter | _: Project => read(plan, Nil)
    case _                                => (None, Nil)
  }

  @tailrec
  private def read(
      plan: LogicalPlan,
      closed: Seq[LogicalPlan]
  ): (Option[JoinChain], Seq[ChainEnd]) = {
    val reader = new ChainReader(closed)
    reader.flatten(plan)
    val shared = reader.shared
    val hiding = reader.hiding.collect { case (p, hidden) if hidden.exists(shared.contains) => p }
    if (shared.nonEmpty && hiding.nonEmpty) read(plan, closed ++ hiding)
    else if (shared.nonEmpty) (None, Seq(isShared(shared)))
    else {
      val ends = reader.ends.toSeq ++ closed.headOption.map(_ => sharedBeyondProjection)
      val isChain = reader.relations.size > 2
      (
        if (isChain) Some(JoinChain(plan, reader.relations.toIndexedSeq, reader.conditions.toSeq))
        else None,
        ends
      )
    }
  }

  private def isShared(columns: AttributeSet) = ChainEnd(
    Reason.SharedColumns,
    s"two relations have the same column: ${columns.toSeq.map(_.name).distinct.mkString(", ")}"
  )

  private val sharedBeyondProjection = ChainEnd(
    Reason.SharedColumns,
    "a relation is used twice, and one use keeps a column to itself that the other has: the joins there are a " +
      "relation by themselves"
  )
}

/** @param closed
  *   projections that end the chain
  */
final private[aqepilot] class ChainReader(closed: Seq[LogicalPlan]) extends PredicateHelper {

  val relations: mutable.ArrayBuffer[LogicalPlan] = mutable.ArrayBuffer.empty
  val conditions: mutable.ArrayBuffer[Expression] = mutable.ArrayBuffer.empty
  val ends: mutable.ArrayBuffer[ChainEnd] = mutable.ArrayBuffer.empty

  /** The projections on the way, with the columns that they hide. */
  val hiding: mutable.ArrayBuffer[(LogicalPlan, AttributeSet)] = mutable.ArrayBuffer.empty

  def flatten(plan: LogicalPlan): Unit = plan match {
    case j @ Join(left, right, _, condition, _) if isFree(j) =>
      flatten(left)
      flatten(right)
      conditions ++= condition.toSeq.flatMap(splitConjunctivePredicates)
    case Filter(condition, child) if isMovable(condition) && leadsToJoin(child) =>
      flatten(child)
      conditions ++= splitConjunctivePredicates(condition)
    case p: Project if isFree(p) && leadsToJoin(p.child) =>
      hiding += p -> (p.child.outputSet -- p.outputSet)
      flatten(p.child)
    case relation =>
      end(relation).foreach(ends += _)
      relations += relation
  }

  /** Columns that more than one relation has. */
  def shared: AttributeSet = {
    val seen = mutable.HashSet.empty[Long]
    AttributeSet(relations.flatMap { relation =>
      val own = relation.output
      val twice = own.filter(a => seen(a.exprId.id))
      seen ++= own.map(_.exprId.id)
      twice
    })
  }

  private def leadsToJoin(plan: LogicalPlan): Boolean = plan match {
    case j: Join               => isFree(j)
    case Filter(c, child)      => isMovable(c) && leadsToJoin(child)
    case p @ Project(_, child) => isFree(p) && leadsToJoin(child)
    case _                     => false
  }

  private def isFree(project: Project): Boolean =
    project.projectList.forall(_.isInstanceOf[Attribute]) && !closed.exists(_ eq project)

  private def isFree(join: Join): Boolean = isUnbound(join) && join.condition.forall(isMovable)

  /** Whether nothing but its condition could end a chain at this join; one of a chain that is ordered already
    * does.
    */
  private def isUnbound(join: Join): Boolean =
    join.joinType.isInstanceOf[InnerLike] && join.hint == JoinHint.NONE && !join.isStreaming &&
      join.getTagValue(ReorderJoins.tag).isEmpty

  private val isMovable =
    new OncePerNode[Expression, Boolean](c => c.deterministic && !CanThrow(c))

  private def end(relation: LogicalPlan): Option[ChainEnd] = relation match {
    case j: Join if isUnbound(j)                => j.condition.flatMap(throwing)
    case Filter(c, child) if leadsToJoin(child) => throwing(c)
    case _                                      => None
  }

  private def throwing(condition: Expression): Option[ChainEnd] =
    splitConjunctivePredicates(condition).find(c => c.deterministic && CanThrow(c)).map { c =>
      ChainEnd(
        Reason.ConditionCanThrow,
        s"${c.sql} could throw on rows that Spark's order drops before"
      )
    }
}

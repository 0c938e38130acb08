package org.apache.spark.sql.aqepilot.plans.joins

import scala.collection.immutable.BitSet
import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{
  And,
  AttributeSet,
  ExprId,
  Expression,
  PredicateHelper
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.plans.{Cross, Inner, InnerLike}

/** Relations that are joined by inner and cross joins without hints, and the conditions among them. No two
  * relations have a column of the same expression id: in one scope the two could not be told apart.
  *
  * @param top
  *   the plan that the chain stands for
  * @param relations
  *   in Spark's own order: left to right
  * @param conditions
  *   in the order in which Spark comes to them
  */
final case class JoinChain(
    top: LogicalPlan,
    relations: IndexedSeq[LogicalPlan],
    conditions: Seq[Expression]
) extends PredicateHelper {

  /** Of each condition the positions of the relations that it is about; none where it has columns of others, too. */
  lazy val positions: Seq[BitSet] = {
    val position = mutable.HashMap.empty[ExprId, Int]
    for ((relation, i) <- relations.zipWithIndex; a <- relation.output) position.put(a.exprId, i)
    conditions.map { c =>
      val needed = c.references.iterator.map(a => position.get(a.exprId)).toSet
      if (needed(None)) BitSet.empty else BitSet(needed.flatten.toSeq: _*)
    }
  }

  /** Of each relation the conditions that need others, too, and the positions of those. */
  private lazy val spanning: IndexedSeq[Seq[(Expression, BitSet)]] = {
    val byRelation = relations.map(_ => mutable.ArrayBuffer.empty[(Expression, BitSet)])
    conditions.zip(positions).filter(_._2.size > 1).foreach { case (c, all) =>
      all.foreach(i => byRelation(i) += c -> (all - i))
    }
    byRelation.map(_.toSeq)
  }

  /** The conditions that join a relation to others, of which there is none for a cross product.
    *
    * As `ReorderJoin.createOrderedJoin` has it: what a relation or the others answer alone joins nothing.
    */
  def connecting(joined: Seq[Int], next: Int): Seq[Expression] =
    connecting(BitSet(joined: _*), next)

  private def connecting(joined: BitSet, next: Int): Seq[Expression] =
    spanning(next).collect { case (c, others) if others.subsetOf(joined) => c }

  /** Some of the relations, and the conditions that need no others. */
  def part(positions: Seq[Int]): (Seq[LogicalPlan], Seq[Expression]) = {
    val chosen = positions.map(relations)
    val columns = AttributeSet(chosen.flatMap(_.output))
    (chosen, conditions.filter(_.references.subsetOf(columns)))
  }

  /** Of some relations those that a condition joins to others. */
  def connected(joined: Seq[Int], rest: Seq[Int]): Seq[Int] = {
    val there = BitSet(joined: _*)
    rest.filter(isConnected(there, _))
  }

  private def isConnected(joined: collection.BitSet, next: Int): Boolean =
    spanning(next).exists { case (_, others) => others.subsetOf(joined) }

  /** Whether the query's author has left out a join's condition: Spark refuses that where
    * `spark.sql.crossJoin.enabled` is false (`CheckCartesianProducts`), unless it says CROSS JOIN.
    */
  lazy val hasImplicitProduct: Boolean = {
    def isProduct(left: LogicalPlan, right: LogicalPlan, condition: Option[Expression]) =
      !condition.toSeq.flatMap(splitConjunctivePredicates).exists { c =>
        c.references.exists(left.outputSet.contains) && c.references.exists(
          right.outputSet.contains
        )
      }
    def isIn(plan: LogicalPlan): Boolean = !relations.exists(_ eq plan) && (plan match {
      case Join(left, right, Inner, condition, _) if isProduct(left, right, condition) => true
      case other => other.children.exists(isIn)
    })
    isIn(top)
  }

  lazy val sparkCrossProducts: Int = JoinChain.crossProducts(relations.indices, positions)

  /** The join of some relations, in their order, without what only the rest needs. */
  def joined(order: Seq[Int], mark: (Join, Int) => Unit): LogicalPlan = {
    var left = conditions
    var plan = relations(order.head)
    var before = BitSet(order.head)
    order.tail.foreach { next =>
      val refs = plan.outputSet ++ relations(next).outputSet
      val (here, others) =
        left.partition(c => c.references.subsetOf(refs) && canEvaluateWithinJoin(c))
      // Spark refuses an inner join that no condition connects where spark.sql.crossJoin.enabled is false.
      val joinType: InnerLike = if (connecting(before, next).isEmpty) Cross else Inner
      val join = Join(plan, relations(next), joinType, here.reduceLeftOption(And), JoinHint.NONE)
      mark(join, next)
      left = others
      before += next
      val needed = top.outputSet ++ AttributeSet.fromAttributeSets(left.map(_.references))
      val output = join.output.filter(needed.contains)
      plan = if (output.size < join.output.size) Project(output, join) else join
    }
    if (order.size == relations.size && left.nonEmpty) Filter(left.reduceLeft(And), plan) else plan
  }
}

object JoinChain {

  /** How many joins of an order have no condition.
    *
    * @param conditions
    *   of each the positions of the relations that it is about
    */
  def crossProducts(order: Seq[Int], conditions: Seq[collection.Set[Int]]): Int = {
    val joined = mutable.BitSet.empty
    order.count { next =>
      val isProduct = joined.nonEmpty && !connects(joined, next, conditions)
      joined += next
      isProduct
    }
  }

  /** Whether a condition joins a relation to those that are joined already. */
  def connects(
      joined: collection.Set[Int],
      next: Int,
      conditions: Seq[collection.Set[Int]]
  ): Boolean =
    conditions.exists(c => c.size > 1 && c(next) && c.forall(i => i == next || joined(i)))
}

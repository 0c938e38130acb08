package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.facts.{Beneath, Estimates, Signature, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.internal.SQLConf

/** What the facts of `join_reorder` are read from.
  *
  * @param candidate
  *   that a score is asked for; none where a whole order is asked for
  * @param joined
  *   what would be joined before the candidate
  */
final private case class OrderStep(
    chain: ChainToOrder,
    candidate: Option[Candidate],
    joined: Option[JoinedRelations]
)

/** A chain that is asked about, once or at each step of an order: a fact of it is computed once for all. */
final private class ChainToOrder(val chain: JoinChain, val conf: SQLConf) {

  val relations: IndexedSeq[ChainRelation] =
    chain.relations.zipWithIndex.map { case (plan, position) =>
      new ChainRelation(position, plan, conf)
    }

  def signatures: Seq[String] = Signature.within(chain.relations, chain.conditions)

  lazy val row: InternalRow = ChainFacts.chain.row(this)

  def whole: OrderStep = OrderStep(this, None, None)

  /** Where these relations are joined, in this order. */
  def joined(order: Seq[Int]): JoinedRelations = new JoinedRelations(chain, order)

  /** Where this relation could be joined next. */
  def step(joined: JoinedRelations, next: Int): OrderStep =
    OrderStep(this, Some(new Candidate(relations(next), chain, joined.order)), Some(joined))
}

/** @param position
  *   in Spark's own order
  */
final private class ChainRelation(val position: Int, val plan: LogicalPlan, conf: SQLConf) {

  lazy val tables: Seq[String] = Tables.of(plan)

  lazy val statistics: Statistics = Estimates.of(plan)

  lazy val estimateFrom: String = Estimates.from(plan, conf)

  lazy val filters: Seq[String] = Beneath.filters(plan)
}

/** A relation that could be joined next. */
final private class Candidate(val relation: ChainRelation, chain: JoinChain, joined: Seq[Int]) {

  /** Those that join it to what is joined so far. */
  lazy val conditions: Seq[Expression] = chain.connecting(joined, relation.position)

  /** It and what is joined so far, with all conditions among them; none for the first. */
  def withJoined: Option[(Seq[LogicalPlan], Seq[Expression])] =
    if (joined.isEmpty) None else Some(chain.part(joined :+ relation.position))

  /** Of its column in the first condition, if that has one column of it. */
  def distinctCount: Option[BigInt] =
    for {
      condition <- conditions.headOption
      column <- condition.references.toSeq.filter(relation.plan.outputSet.contains) match {
        case Seq(one) => Some(one)
        case _        => None
      }
      statistics <- relation.statistics.attributeStats.get(column)
      count <- statistics.distinctCount
    } yield count
}

/** What is joined so far: the same for each candidate that is asked about next. */
final private class JoinedRelations(chain: JoinChain, val order: Seq[Int]) {

  /** None before the first relation. */
  lazy val tables: Option[Seq[String]] =
    ifAny(order.flatMap(i => Tables.of(chain.relations(i))).distinct)

  /** Of their join; None before the first relation. */
  lazy val statistics: Option[Statistics] =
    ifAny(Estimates.of(chain.joined(order, (_, _) => ())))

  /** They and the conditions among them; None before the first relation. */
  def part: Option[(Seq[LogicalPlan], Seq[Expression])] = ifAny(chain.part(order))

  private def ifAny[T](value: => T): Option[T] = if (order.isEmpty) None else Some(value)
}

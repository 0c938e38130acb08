package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.{
  Beneath,
  CommonFacts,
  Estimates,
  JoinSide,
  LazyRow,
  QueryFacts,
  Tables
}
import org.apache.spark.sql.aqepilot.plans.joins.{FaultShapes, JoinChain, JoinShape}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericInternalRow}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.internal.SQLConf

/** The facts of `join_reorder` on one chain, in the order of its schema. */
final class ChainFacts(
    chain: JoinChain,
    sc: SparkContext,
    conf: SQLConf,
    executionId: Option[Long]
) {

  private def long(n: Option[BigInt]): Any = n.map(JoinSide.toLong).getOrElse(null)

  private val relations: IndexedSeq[LazyRow] =
    chain.relations.zipWithIndex.map { case (plan, position) =>
      relation(plan, position)
    }.toIndexedSeq

  private def stats(plan: LogicalPlan): Statistics = Estimates.of(plan)

  private def values(plan: LogicalPlan, position: Int): Seq[() => Any] = {
    lazy val filters = Beneath.filters(plan)
    Seq(
      () => position,
      () => QueryFacts.strings(Tables.of(plan)),
      () => JoinSide.toLong(stats(plan).sizeInBytes),
      () => long(stats(plan).rowCount),
      () =>
        QueryFacts.string(Estimates.from(plan, conf)),
      () => QueryFacts.strings(filters),
      () => filters.count(!_.endsWith("IS NOT NULL)"))
    )
  }

  private def relation(plan: LogicalPlan, position: Int): LazyRow =
    LazyRow(values(plan, position): _*)

  private lazy val query = QueryFacts.query(sc, executionId)
  private lazy val settings = CommonFacts.conf(conf)
  private lazy val cluster = QueryFacts.cluster(sc)

  private lazy val chainRow: LazyRow = LazyRow(
    () => chain.relations.size,
    () => new GenericArrayData(relations.map(_.copy()).toArray[Any]),
    () => QueryFacts.strings(chain.conditions.map(_.sql)),
    () => chain.sparkCrossProducts,
    () => QueryFacts.strings(FaultShapes.met(JoinShape(Inner, Nil, None, chain.relations))),
    () => new GenericArrayData(PrunedRelations.of(chain, conf).map(_.row).toArray[Any])
  )

  private def distinctCount(plan: LogicalPlan, conditions: Seq[Expression]): Option[BigInt] =
    for {
      condition <- conditions.headOption
      column <- condition.references.toSeq.filter(plan.outputSet.contains) match {
        case Seq(one) => Some(one)
        case _        => None
      }
      statistics <- stats(plan).attributeStats.get(column)
      count <- statistics.distinctCount
    } yield count

  private def candidate(position: Int, joined: Seq[Int]): InternalRow = {
    val plan = chain.relations(position)
    lazy val conditions = chain.connecting(joined, position)
    val own = relations(position)
    val shared = (0 until own.numFields).map(i => () => own.get(i, null))
    LazyRow(
      shared ++ Seq(
        () => QueryFacts.strings(conditions.map(_.sql)),
        () => long(distinctCount(plan, conditions))
      ): _*
    )
  }

  /** Facts of what is joined so far are those of each candidate that is asked about next. */
  def joined(order: Seq[Int]): InternalRow =
    if (order.isEmpty) new GenericInternalRow(Array[Any](0, null, null, null))
    else {
      lazy val plan = chain.joined(order, (_, _) => ())
      LazyRow(
        () => order.size,
        () => QueryFacts.strings(order.flatMap(i => Tables.of(chain.relations(i))).distinct),
        () => JoinSide.toLong(stats(plan).sizeInBytes),
        () => long(stats(plan).rowCount)
      )
    }

  /** About a relation that could be joined next. */
  def row(position: Int, joined: Seq[Int], joinedRow: InternalRow): LazyRow =
    facts(() => candidate(position, joined), () => joinedRow)

  /** About the whole chain. */
  def whole: LazyRow = facts(() => null, () => null)

  private def facts(candidate: () => Any, joined: () => Any): LazyRow = LazyRow(
    () => query,
    () => settings,
    () => cluster,
    () => chainRow,
    candidate,
    joined
  )
}

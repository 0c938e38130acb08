package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeMap,
  Expression,
  NamedExpression,
  SortOrder
}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  LogicalPlan,
  Project,
  RepartitionByExpression,
  SubqueryAlias,
  UnaryNode,
  Window
}
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

/** One side of a join that is being planned.
  *
  * @param keys
  *   its expressions of the join's equality keys; none where the join has none
  * @param runTimeHint
  *   what a run-time rule, Spark's or ours, has put here
  */
final class PlannedSide(plan: LogicalPlan, keys: Seq[Expression], runTimeHint: Option[String]) {

  def sizeInBytes: BigInt = Estimates.of(plan).sizeInBytes

  def rowCount: Option[BigInt] = Estimates.of(plan).rowCount

  private lazy val stage: Option[ShuffleFacts] =
    JoinSide.of(plan).finished.flatMap(_.mapStats).map(ShuffleFacts.of)

  /** Changes whenever a fact of this side does. */
  def version: Any = (sizeInBytes, rowCount, Estimates.of(plan).isRuntime)

  def row(admits: PlannedSide.Admits, conf: SQLConf): LazyRow = {
    def long(n: Option[BigInt]): Any = n.map(JoinSide.toLong).getOrElse(null)
    LazyRow(
      () => QueryFacts.strings(Tables.of(plan)),
      () => JoinSide.toLong(sizeInBytes),
      () => long(rowCount),
      () => JoinSide.rowBytes(plan),
      () => QueryFacts.string(Estimates.from(plan, conf)),
      () => QueryFacts.strings(Beneath.filters(plan)),
      () => Beneath.joins(plan),
      () => long(distinctCount),
      () => if (keys.isEmpty) null else isDistributed,
      () => if (keys.isEmpty) null else isSorted,
      () => stage.map(_.max).getOrElse(null),
      () => stage.map(_.total).getOrElse(null),
      () => runTimeHint.map(QueryFacts.string).orNull,
      () => admits.broadcast,
      () => admits.shuffleHash,
      () => admits.broadcastsBySize,
      () => admits.hashesBySize,
      () => admits.isMuchSmaller,
      () => admits.prunes
    )
  }

  private def distinctCount: Option[BigInt] = keys match {
    case Seq(key: Attribute) =>
      Estimates.of(plan).attributeStats.get(key).flatMap(_.distinctCount)
    case _ => None
  }

  private def isDistributed: Boolean = plan match {
    case Stage(_, physical) =>
      physical.outputPartitioning.satisfies(ClusteredDistribution(keys))
    case _ => Distributed.by(plan, keys)
  }

  private def isSorted: Boolean = plan match {
    case Stage(_, physical) =>
      val sorted = physical.outputOrdering.take(keys.size).map(_.child)
      sorted.size == keys.size && keys.forall(k => sorted.exists(_.semanticEquals(k)))
    case _ => Distributed.isSorted(plan, keys)
  }
}

object PlannedSide {

  /** What Spark's own rules say of a side: JoinSelectionHelper.
    *
    * @param prunes
    *   whether its broadcast prunes partitions ([[PruningSides]])
    */
  final case class Admits(
      broadcast: Boolean,
      shuffleHash: Boolean,
      broadcastsBySize: Boolean,
      hashesBySize: Boolean,
      isMuchSmaller: Boolean,
      prunes: Boolean
  )
}

/** Whether rows with equal keys are known to be together before a join is planned. */
private object Distributed {

  /** By an aggregate, window or shuffle, or in a bucketed table, of some of the keys. */
  def by(plan: LogicalPlan, keys: Seq[Expression]): Boolean = plan match {
    case Project(list, child)    => through(list, keys).exists(by(child, _))
    case Filter(_, child)        => by(child, keys)
    case SubqueryAlias(_, child) => by(child, keys)
    case a: Aggregate            =>
      a.groupingExpressions.nonEmpty &&
      through(a.aggregateExpressions, keys).exists(covers(_, a.groupingExpressions))
    case w: Window =>
      if (w.partitionSpec.isEmpty) by(w.child, keys) else covers(keys, w.partitionSpec)
    case r: RepartitionByExpression =>
      r.partitionExpressions.nonEmpty && !r.partitionExpressions.exists(
        _.isInstanceOf[SortOrder]
      ) &&
      covers(keys, r.partitionExpressions)
    case Stage(of, _) => by(of, keys)
    case leaf         =>
      buckets(leaf).exists(b => columns(leaf, b.bucketColumnNames).exists(covers(keys, _)))
  }

  def isSorted(plan: LogicalPlan, keys: Seq[Expression]): Boolean = plan match {
    case Project(list, child) => through(list, keys).exists(isSorted(child, _))
    case Filter(_, child)     => isSorted(child, keys)
    case _: UnaryNode         => false
    case leaf                 => buckets(leaf).exists { b =>
        b.sortColumnNames.nonEmpty &&
        columns(leaf, b.sortColumnNames.take(keys.size)).exists(s =>
          s.size == keys.size && covers(keys, s)
        )
      }
  }

  private def buckets(plan: LogicalPlan): Option[BucketSpec] = plan match {
    case r: LogicalRelation =>
      r.relation match {
        case fs: HadoopFsRelation if SQLConf.get.bucketingEnabled => fs.bucketSpec
        case _                                                    => None
      }
    case _ => None
  }

  private def columns(plan: LogicalPlan, names: Seq[String]): Option[Seq[Expression]] = {
    val found = names.flatMap(name => plan.output.find(_.name == name))
    if (found.size == names.size) Some(found) else None
  }

  /** Whether all of these are among the keys. */
  private def covers(keys: Seq[Expression], by: Seq[Expression]): Boolean =
    by.forall(e => keys.exists(_.semanticEquals(e)))

  /** The keys below a projection; None where one is made by it. */
  private def through(
      list: Seq[NamedExpression],
      keys: Seq[Expression]
  ): Option[Seq[Expression]] = {
    val aliases = AttributeMap(list.collect { case a: Alias => a.toAttribute -> a.child })
    Some(keys.map(_.transform { case a: Attribute => aliases.getOrElse(a, a) }))
  }
}

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
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

/** Whether rows with equal keys are known to be together before a join is planned. */
private[aqepilot] object Distributed {

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
    case Stage(link, _) => by(link, keys)
    case leaf           =>
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
    val columns = names.flatMap(name => plan.output.find(_.name == name))
    if (columns.size == names.size) Some(columns) else None
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

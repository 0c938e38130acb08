package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.SparkContext
import org.apache.spark.sql.aqepilot.facts.Estimates
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, Statistics}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{
  BooleanType,
  DateType,
  DecimalType,
  IntegralType,
  StringType,
  TimestampNTZType
}

/** What the facts of `write_distribution` are read from. */
final private class WriteToDistribute(
    val target: WriteTarget,
    val conf: SQLConf,
    sc: SparkContext
) {

  val query: LogicalPlan = target.query

  lazy val written: WrittenQuery = new WrittenQuery(
    query,
    conf,
    conf.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).getOrElse(sc.defaultParallelism)
  )

  lazy val statistics: Statistics = Estimates.of(query)

  def dynamicColumns: Seq[String] = names(target.dynamic)

  def constantColumns: Seq[String] = {
    val constant = AttributeSet(query match {
      case Project(list, _) => list.collect { case a: Alias if a.child.foldable => a.toAttribute }
      case _                => Nil
    })
    names(target.dynamic.filter(constant.contains))
  }

  def ambiguousColumns: Seq[String] = names(target.dynamic.filterNot(WriteToDistribute.isExact))

  /** The names of those written columns of which something holds. */
  def columnsWhere(holds: Attribute => Boolean): Seq[String] =
    target.columns.collect { case (name, column) if holds(column) => name }

  /** Of the only dynamic column. */
  def distinctCount: Option[BigInt] = target.dynamic match {
    case Seq(one) => statistics.attributeStats.get(one).flatMap(_.distinctCount)
    case _        => None
  }

  def isStreaming: Boolean =
    query.isStreaming || sc.getLocalProperty(WriteToDistribute.StreamingQuery) != null

  private def names(columns: Seq[Attribute]): Seq[String] = columns.map(target.nameOf)
}

private object WriteToDistribute {

  /** On the threads of a streaming query, `foreachBatch` included. */
  private val StreamingQuery = "sql.streaming.queryId"

  /** Whether two values are the same to Spark's sort if, and only if, they are as names of directories. */
  private def isExact(column: Attribute): Boolean = column.dataType match {
    case StringType | BooleanType | DateType | TimestampNTZType => true
    case _: IntegralType | _: DecimalType                       => true
    case _                                                      => false
  }
}

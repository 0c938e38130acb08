package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex,
  HadoopFsRelation,
  LogicalRelation
}

/** Tables of which a filter leaves out partitions, and Spark has not yet done so: their sizes are of all partitions. It
  * does so after joins are ordered.
  */
private object UnprunedTables {

  def areIn(plan: LogicalPlan): Boolean = plan.exists {
    case f: Filter => f.references.exists(AttributeSet(f.child.collect(columns).flatten).contains)
    case _         => false
  }

  /** Partition columns of a table that is read in whole so far. */
  private val columns: PartialFunction[LogicalPlan, Seq[Attribute]] = {
    case r: LogicalRelation if isOfCatalog(r)               => partitionColumns(r)
    case h: HiveTableRelation if h.prunedPartitions.isEmpty => h.partitionCols
  }

  private def isOfCatalog(relation: LogicalRelation) = relation.relation match {
    case fs: HadoopFsRelation => fs.location.isInstanceOf[CatalogFileIndex]
    case _                    => false
  }

  private def partitionColumns(relation: LogicalRelation): Seq[Attribute] = {
    val names = relation.catalogTable.toSeq.flatMap(_.partitionColumnNames)
    relation.output.filter(a => names.contains(a.name))
  }
}

package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** Names of the tables, or of the files' folders, that a plan reads. */
object Tables {

  def of(plan: LogicalPlan): Seq[String] =
    Beneath.leaves(plan).filter(_.isTable).map(_.word).distinct

  /** The same for a person, with a word for what has no name, such as `Range`. */
  def described(plan: LogicalPlan): String =
    Beneath.leaves(plan).map(_.word).distinct.mkString("+")

  /** The same of what is joined. */
  def joined(plans: LogicalPlan*): String = plans.map(described).mkString(" ⋈ ")

  private[aqepilot] def name(leaf: LogicalPlan): Option[String] = (leaf match {
    case r: LogicalRelation =>
      r.catalogTable
        .map(_.identifier.unquotedString)
        .orElse(r.relation match {
          case fs: HadoopFsRelation => fs.location.rootPaths.headOption.map(_.getName)
          case _                    => None
        })
    case h: HiveTableRelation         => Some(h.tableMeta.identifier.unquotedString)
    case v2: DataSourceV2ScanRelation => Some(v2.relation.name)
    case m: InMemoryRelation          => m.cacheBuilder.tableName
    case _                            => None
  }).map(_.stripPrefix("spark_catalog."))
}

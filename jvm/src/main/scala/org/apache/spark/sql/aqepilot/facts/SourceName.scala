package org.apache.spark.sql.aqepilot.facts

import java.util.Locale

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.v2.{
  DataSourceV2Relation,
  DataSourceV2ScanRelation
}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sources.DataSourceRegister

/** What a source of a plan is called, the same on every day: a table by its qualified name, files by
  * their root paths, both without what changes from run to run (partition directories, dates, ids).
  */
private[aqepilot] object SourceName {

  /** None for a source without a name of its own (rows in the query, a range, an RDD). */
  def of(leaf: LogicalPlan): Option[String] = leaf match {
    case relation: LogicalRelation =>
      Some(relation.catalogTable.map(t => table(t.identifier)).getOrElse(relation.relation match {
        case files: HadoopFsRelation =>
          val format = files.fileFormat match {
            case named: DataSourceRegister => named.shortName()
            case other                     => other.getClass.getSimpleName
          }
          format + " " + paths(files.location.rootPaths.map(_.toString))
        case other =>
          other.getClass.getSimpleName + " " + ObjectId.replaceAllIn(path(other.toString), "")
      }))
    case hive: HiveTableRelation  => Some(table(hive.tableMeta.identifier))
    case v2: DataSourceV2Relation =>
      Some(v2.identifier match {
        case Some(id) =>
          table(v2.catalog.map(_.name).toSeq ++ id.namespace.toSeq :+ id.name)
        case None => path(v2.table.name)
      })
    case _ => None
  }

  /** The columns that a source is partitioned by; none where it does not say so. */
  def partitionColumns(leaf: LogicalPlan): Seq[String] = leaf match {
    case relation: LogicalRelation =>
      relation.relation match {
        case files: HadoopFsRelation => files.partitionSchema.fieldNames.toSeq
        case _                       => relation.catalogTable.toSeq.flatMap(_.partitionColumnNames)
      }
    case hive: HiveTableRelation        => hive.partitionCols.map(_.name)
    case scan: DataSourceV2ScanRelation => partitionColumns(scan.relation)
    case v2: DataSourceV2Relation       =>
      v2.table.partitioning.toSeq.flatMap(_.references).map(_.fieldNames.last)
    case _ => Nil
  }

  private def table(id: TableIdentifier): String =
    table((id.catalog ++ id.database).toSeq :+ id.table)

  private def table(parts: Seq[String]): String =
    "table " + parts.filterNot(_ == "spark_catalog").map(undated).mkString(".")
      .toLowerCase(Locale.ROOT)

  /** Several roots are often one glob. Only the extension of a file tells them apart. */
  def paths(roots: Seq[String]): String = {
    val named =
      if (roots.size > 1) roots.map(r => FileName.replaceAllIn(r, "/*$1")) else roots
    named.map(path).distinct.sorted.mkString(",")
  }

  /** The last two parts of `s3a://bucket/sales/dt=2026-11-21/hour=07` become one asterisk. */
  def path(text: String): String =
    text.split('/').foldLeft(Vector.empty[String]) { (done, part) =>
      val afterDate = done.lastOption.contains(Varying)
      val name =
        if (Partition.matcher(part).matches || isRunId(part, afterDate)) Varying else undated(part)
      if (name == Varying && afterDate) done else done :+ name
    }.mkString("/")

  private def isRunId(part: String, afterDate: Boolean): Boolean =
    part.nonEmpty && part.forall(c => c >= '0' && c <= '9') &&
      (part.length >= 8 || (part.length == 4 && (part.startsWith("19") || part.startsWith("20"))) ||
        (part.length <= 2 && afterDate))

  private def undated(name: String): String =
    Date.replaceAllIn(Uuid.replaceAllIn(name, Varying), Varying)

  private val Varying = "*"
  private val Partition = "[^=]+=.*".r.pattern
  private val FileName = "/[^/]+(\\.[A-Za-z0-9]+)$".r
  private val ObjectId = "@[0-9a-f]{4,}".r
  private val Uuid = "(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}".r

  // 2026-11, 20261121, 2026_11_21, 2026-11-21T07:30, 20261121-0730, ...
  private val Date = ("(?<![0-9])(19|20)[0-9]{2}([-_.]?)(0[1-9]|1[0-2])" +
    "(\\2(0[1-9]|[12][0-9]|3[01])([T_-]?[0-9]{2}([-:_.]?[0-9]{2}){0,2}Z?)?)?(?![0-9])").r
}

package org.apache.spark.sql.aqepilot.points.write_distribution

import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.catalog.{BucketSpec, CatalogTable}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Sort}
import org.apache.spark.sql.execution.datasources.{
  InsertIntoHadoopFsRelationCommand,
  V1WriteCommand
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.PartitionOverwriteMode
import org.apache.spark.sql.sources.DataSourceRegister

/** The target of a write command, and where a rebalance goes. */
private[write_distribution] trait WriteTarget {

  /** Its only child is the query whose rows are written, with what Spark has put above it for the write. */
  def command: LogicalPlan

  /** The query that facts are about, as it was before scans were planned. */
  def query: LogicalPlan

  /** A local sort of Spark's own for the write; a rebalance goes below. */
  def sort: Option[Sort]

  /** The written columns: what the write calls them, and what the query has. */
  def columns: Seq[(String, Attribute)]
  def format: Option[String]
  def table: Option[String]
  def mode: Option[String]
  def partitionColumns: Seq[String]

  /** Of the query: the partition columns whose values come from the rows. */
  def dynamic: Seq[Attribute]

  /** Functions of columns that the table is partitioned by. */
  def transforms: Seq[String]

  /** None where the command does not have it. */
  def staticPartitions: Option[Seq[String]]
  def overwritesDynamically: Boolean
  def buckets: Option[BucketSpec]
  def distribution: Option[String]

  /** Beside the partition columns. */
  def requiredOrdering: Seq[String]

  /** None where the command does not have it. */
  def maxConcurrentWriters: Option[Int]

  /** Whether a task may have a file open in each partition at once. */
  def fansOut: Boolean

  /** What a rebalance goes above. */
  final def below: LogicalPlan = sort.fold(command.children.head)(_.child)

  /** The command with the rows rebalanced. */
  final def above(rebalance: LogicalPlan): LogicalPlan =
    command.withNewChildren(
      Seq(sort.fold(rebalance)(_.withNewChildren(Seq(rebalance)).asInstanceOf[Sort]))
    )

  /** Columns of what a rebalance goes above, by the names that the write has for them. */
  final def attributes(names: Seq[String]): Seq[Attribute] = names.flatMap { name =>
    columns.indexWhere(_._1 == name) match {
      case -1 => None
      case n  => below.output.lift(n)
    }
  }

  final def nameOf(column: Attribute): String =
    columns.collectFirst { case (name, a) if a.exprId == column.exprId => name }
      .getOrElse(column.name)
}

private[write_distribution] object WriteTarget {
  def word(mode: SaveMode): String = mode match {
    case SaveMode.ErrorIfExists => "ERROR_IF_EXISTS"
    case other                  => other.name.toUpperCase(Locale.ROOT)
  }
}

/** A write by Spark's own writer of files. */
final private[write_distribution] class V1Target(val command: V1WriteCommand, conf: SQLConf)
    extends WriteTarget {

  override def query: LogicalPlan = command.query

  override def sort: Option[Sort] = None

  override lazy val columns: Seq[(String, Attribute)] = command.outputColumnNames.zip(query.output)

  private def isStatic(column: Attribute): Boolean =
    command.staticPartitions.keys.exists(conf.resolver(_, column.name))

  override lazy val dynamic: Seq[Attribute] = command.partitionColumns.filterNot(isStatic)

  override def format: Option[String] = command.fileFormat match {
    case named: DataSourceRegister => Try(named.shortName()).toOption
    case _                         => None
  }

  override def table: Option[String] =
    catalogTable.map(_.identifier.unquotedString.stripPrefix("spark_catalog."))

  /** `InsertIntoHiveTable` has the dynamic ones alone. */
  override def partitionColumns: Seq[String] =
    catalogTable.map(_.partitionColumnNames).filter(_.nonEmpty)
      .getOrElse(command.partitionColumns.map(nameOf))

  override def transforms: Seq[String] = Nil

  override def staticPartitions: Option[Seq[String]] =
    Some(command.staticPartitions.map { case (k, v) => s"$k=$v" }.toSeq.sorted)

  override def buckets: Option[BucketSpec] = command.bucketSpec

  override def distribution: Option[String] = None

  /** Beside the dynamic columns, which `V1Writes` sorts by where the rows are not sorted so. */
  override def requiredOrdering: Seq[String] = command.requiredOrdering.map(_.child).filter {
    case a: Attribute => !dynamic.exists(_.exprId == a.exprId)
    case _            => true
  }.map(_.sql)

  override def maxConcurrentWriters: Option[Int] = Some(conf.maxConcurrentOutputFileWriters)

  /** Beyond the concurrent ones it sorts. */
  override def fansOut: Boolean = false

  /** Not every Spark has the classes of Hive: they are asked by name. */
  private lazy val (catalogTable: Option[CatalogTable], written: Option[String]) = command match {
    case files: InsertIntoHadoopFsRelationCommand =>
      (files.catalogTable, Some(WriteTarget.word(files.mode)))
    case other =>
      def field(name: String) = Try(other.getClass.getMethod(name).invoke(other)).toOption
      (
        field("table").collect { case t: CatalogTable => t },
        field("overwrite").collect {
          case overwrites: java.lang.Boolean =>
            WriteTarget.word(if (overwrites) SaveMode.Overwrite else SaveMode.Append)
        }
      )
  }

  override def mode: Option[String] = written

  override def overwritesDynamically: Boolean = command match {
    case files: InsertIntoHadoopFsRelationCommand => files.dynamicPartitionOverwrite
    case _                                        =>
      mode.contains(WriteTarget.word(SaveMode.Overwrite)) && dynamic.nonEmpty &&
      conf.partitionOverwriteMode == PartitionOverwriteMode.DYNAMIC
  }
}

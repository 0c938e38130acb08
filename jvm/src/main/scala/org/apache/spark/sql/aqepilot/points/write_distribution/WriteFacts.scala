package org.apache.spark.sql.aqepilot.points.write_distribution

import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.aqepilot.decision.{LazyRow, QueryFacts}
import org.apache.spark.sql.aqepilot.doors.Sessions
import org.apache.spark.sql.aqepilot.plans.{Estimates, JoinSide, Tables}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.execution.datasources.{
  FileFormat,
  InsertIntoHadoopFsRelationCommand,
  V1WriteCommand
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.internal.SQLConf.PartitionOverwriteMode
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.{
  BooleanType,
  DateType,
  DecimalType,
  IntegralType,
  StringType,
  TimestampNTZType
}

/** The facts of `write_distribution` on one command, in the order of its schema. */
final class WriteFacts(
    write: V1WriteCommand,
    session: Sessions.Classic,
    executionId: Option[Long]
) {

  private val sc = session.sparkContext
  private val conf = session.sessionState.conf
  private val query = write.query
  private lazy val written = new WrittenQuery(
    query,
    conf,
    conf.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).getOrElse(sc.defaultParallelism)
  )

  /** The written columns: what the write calls them, and what the query has. */
  private lazy val columns: Seq[(String, Attribute)] =
    write.outputColumnNames.zip(query.output)

  private lazy val stats = Estimates.unpushed(query, conf)

  private def nameOf(column: Attribute): String =
    columns.collectFirst { case (name, a) if a.exprId == column.exprId => name }
      .getOrElse(column.name)

  private def isStatic(column: Attribute): Boolean =
    write.staticPartitions.keys.exists(conf.resolver(_, column.name))

  private lazy val dynamic: Seq[Attribute] = write.partitionColumns.filterNot(isStatic)

  private lazy val constant: AttributeSet = AttributeSet(query match {
    case Project(list, _) => list.collect { case a: Alias if a.child.foldable => a.toAttribute }
    case _                => Nil
  })

  /** Columns by the names that the write has for them. */
  def attributes(names: Seq[String]): Seq[Attribute] =
    names.flatMap(name => columns.collectFirst { case (`name`, attribute) => attribute })

  def row: LazyRow = LazyRow(
    () => QueryFacts.query(sc, executionId),
    () => QueryFacts.conf(conf),
    () => QueryFacts.cluster(sc),
    () => writeRow,
    () => inputRow
  )

  private def writeRow = LazyRow(
    () => QueryFacts.string(write.nodeName),
    () => string(format(write.fileFormat)),
    () => string(table.map(_.identifier.unquotedString.stripPrefix("spark_catalog."))),
    () => string(mode),
    () => QueryFacts.strings(columns.map(_._1)),
    () => QueryFacts.strings(partitionColumns),
    () => QueryFacts.strings(dynamic.map(nameOf)),
    () => QueryFacts.strings(dynamic.filter(constant.contains).map(nameOf)),
    () => QueryFacts.strings(dynamic.filterNot(WriteFacts.isExact).map(nameOf)),
    () => QueryFacts.strings(write.staticPartitions.map { case (k, v) => s"$k=$v" }.toSeq.sorted),
    () => overwritesDynamically,
    () => QueryFacts.strings(write.bucketSpec.toSeq.flatMap(_.bucketColumnNames)),
    () => write.bucketSpec.map(_.numBuckets).getOrElse(null),
    () => QueryFacts.strings(requiredOrdering),
    () => conf.maxConcurrentOutputFileWriters,
    () => conf.adaptiveExecutionEnabled,
    () => query.isStreaming || sc.getLocalProperty(WriteFacts.StreamingQuery) != null
  )

  private def inputRow = LazyRow(
    () => QueryFacts.strings(Tables.of(query)),
    () => JoinSide.toLong(stats.sizeInBytes),
    () => stats.rowCount.map(JoinSide.toLong).getOrElse(null),
    () => JoinSide.rowBytes(query),
    () =>
      QueryFacts.string(Estimates.fromUnpushed(query, conf)),
    () => distinctCount.map(JoinSide.toLong).getOrElse(null),
    () => written.tasks.getOrElse(null),
    () => string(written.lastShuffle.map(_.word)),
    () =>
      QueryFacts.strings(columns.collect { case (name, a) if written.isShuffledBy(a) => name }),
    () => string(written.usersDistribution),
    () => written.isLimited,
    () => query.deterministic,
    () =>
      QueryFacts.strings(columns.collect { case (name, a) if written.distributes(a) => name }),
    () => written.spreadsEvenly
  )

  private def string(value: Option[String]): Any = value.map(QueryFacts.string).orNull

  /** `InsertIntoHiveTable` has the dynamic ones alone. */
  private def partitionColumns: Seq[String] =
    table.map(_.partitionColumnNames).filter(_.nonEmpty)
      .getOrElse(write.partitionColumns.map(nameOf))

  /** Beside the dynamic columns, which `V1Writes` sorts by where the rows are not sorted so. */
  private def requiredOrdering: Seq[String] = write.requiredOrdering.map(_.child).filter {
    case a: Attribute => !dynamic.exists(_.exprId == a.exprId)
    case _            => true
  }.map(_.sql)

  private def distinctCount: Option[BigInt] = dynamic match {
    case Seq(one) => stats.attributeStats.get(one).flatMap(_.distinctCount)
    case _        => None
  }

  private def format(of: FileFormat): Option[String] = of match {
    case named: DataSourceRegister => Try(named.shortName()).toOption
    case _                         => None
  }

  /** Not every Spark has the classes of Hive: they are asked by name. */
  private lazy val (table: Option[CatalogTable], mode: Option[String]) = write match {
    case files: InsertIntoHadoopFsRelationCommand =>
      (files.catalogTable, Some(WriteFacts.word(files.mode)))
    case other =>
      def field(name: String) = Try(other.getClass.getMethod(name).invoke(other)).toOption
      (
        field("table").collect { case t: CatalogTable => t },
        field("overwrite").collect {
          case overwrites: java.lang.Boolean =>
            WriteFacts.word(if (overwrites) SaveMode.Overwrite else SaveMode.Append)
        }
      )
  }

  private def overwritesDynamically: Boolean = write match {
    case files: InsertIntoHadoopFsRelationCommand => files.dynamicPartitionOverwrite
    case _                                        =>
      mode.contains(WriteFacts.word(SaveMode.Overwrite)) && dynamic.nonEmpty &&
      conf.partitionOverwriteMode == PartitionOverwriteMode.DYNAMIC
  }
}

private object WriteFacts {

  /** On the threads of a streaming query, `foreachBatch` included. */
  val StreamingQuery = "sql.streaming.queryId"

  /** Whether two values are the same to Spark's sort if, and only if, they are as names of directories. */
  def isExact(column: Attribute): Boolean = column.dataType match {
    case StringType | BooleanType | DateType | TimestampNTZType => true
    case _: IntegralType | _: DecimalType                       => true
    case _                                                      => false
  }

  def word(mode: SaveMode): String = mode match {
    case SaveMode.ErrorIfExists => "ERROR_IF_EXISTS"
    case other                  => other.name.toUpperCase(Locale.ROOT)
  }
}

package org.apache.spark.sql.aqepilot.points.write_distribution

import java.util.EnumSet
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expressions, SortDirection, SortOrder, Transform}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.sources.{AlwaysTrue, Filter}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Tables of numbers, in the memory of one JVM. What a table requires of a write is said by its properties:
  *   - `distribution`: `clustered` or `ordered` by the column `p`
  *   - `ordering`: columns that each task's rows have to be sorted by; a task that comes back to a partition fails then
  *   - `silent`: whether its writes do not say what they require
  */
class MemoryCatalog extends TableCatalog {

  private val tables = new ConcurrentHashMap[Identifier, MemoryTable]

  override def name: String = "memory"

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = ()

  override def listTables(namespace: Array[String]): Array[Identifier] =
    tables.keySet.toArray(Array.empty[Identifier])

  override def loadTable(ident: Identifier): Table =
    Option(tables.get(ident)).getOrElse(throw new NoSuchTableException(ident))

  override def createTable(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: java.util.Map[String, String]
  ): Table = {
    val made = new MemoryTable(s"memory.${ident.name}", schema, partitions, properties)
    tables.put(ident, made)
    made
  }

  override def alterTable(ident: Identifier, changes: TableChange*): Table = loadTable(ident)

  override def dropTable(ident: Identifier): Boolean = tables.remove(ident) != null

  override def renameTable(ident: Identifier, to: Identifier): Unit =
    tables.put(to, tables.remove(ident))
}

/** A row, and the task that wrote it. */
final case class Written(task: Int, row: Seq[Any])

final class MemoryTable(
    override val name: String,
    override val schema: StructType,
    override val partitioning: Array[Transform],
    override val properties: java.util.Map[String, String]
) extends Table
    with SupportsWrite
    with SupportsRead {

  @volatile var rows: Seq[Written] = Nil

  override def capabilities: java.util.Set[TableCapability] = EnumSet.of(
    TableCapability.BATCH_READ,
    TableCapability.BATCH_WRITE,
    TableCapability.TRUNCATE,
    TableCapability.OVERWRITE_BY_FILTER,
    TableCapability.OVERWRITE_DYNAMIC
  )

  private[write_distribution] def columns(key: String): Seq[String] =
    Option(properties.get(key)).toSeq.flatMap(_.split(",")).map(_.trim)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new MemoryWrites(this)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = new MemoryScan(this)
}

private class MemoryWrites(table: MemoryTable)
    extends WriteBuilder
    with SupportsOverwrite
    with SupportsDynamicOverwrite {

  /** Of the rows that are there, those that stay, by the new ones. */
  private var stay: (Written, Seq[Written]) => Boolean = (_, _) => true

  override def overwrite(filters: Array[Filter]): WriteBuilder = {
    val value = filters.collectFirst {
      case org.apache.spark.sql.sources.EqualTo("p", value) => value
    }
    require(value.isDefined || filters.forall(_ == AlwaysTrue), filters.mkString)
    stay = (old, _) => value.exists(_ != old.row(1))
    this
  }

  override def overwriteDynamicPartitions(): WriteBuilder = {
    stay = (old, now) => !now.exists(_.row(1) == old.row(1))
    this
  }

  override def build(): Write = {
    val batch = new MemoryBatch(table, stay)
    if (table.properties.containsKey("silent")) new Write {
      override def toBatch: BatchWrite = batch
    }
    else
      new RequiresDistributionAndOrdering {
        private def sorts(columns: String*): Array[SortOrder] =
          columns.map(c => Expressions.sort(Expressions.column(c), SortDirection.ASCENDING)).toArray

        override def requiredDistribution: Distribution = table.columns("distribution") match {
          case Seq("clustered") => Distributions.clustered(Array(Expressions.column("p")))
          case Seq("ordered")   => Distributions.ordered(sorts("p"))
          case _                => Distributions.unspecified
        }
        override def requiredOrdering: Array[SortOrder] = sorts(table.columns("ordering"): _*)
        override def toBatch: BatchWrite = batch
      }
  }
}

private class MemoryBatch(table: MemoryTable, stay: (Written, Seq[Written]) => Boolean)
    extends BatchWrite {

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
    new MemoryWriters(table.schema, table.columns("ordering").nonEmpty)

  override def commit(messages: Array[WriterCommitMessage]): Unit = table.synchronized {
    val now = messages.toSeq.collect { case TaskRows(rows) => rows }.flatten
    table.rows = table.rows.filter(stay(_, now)) ++ now
  }

  override def abort(messages: Array[WriterCommitMessage]): Unit = ()
}

private case class TaskRows(rows: Seq[Written]) extends WriterCommitMessage

private class MemoryWriters(schema: StructType, isClustered: Boolean) extends DataWriterFactory {
  override def createWriter(task: Int, id: Long): DataWriter[InternalRow] =
    new DataWriter[InternalRow] {
      private val rows = mutable.ArrayBuffer.empty[Written]
      private val closed = mutable.Set.empty[Any]

      override def write(row: InternalRow): Unit = {
        val now = Written(task, row.toSeq(schema))
        rows.lastOption.map(_.row(1)).filter(_ != now.row(1)).foreach(closed += _)
        if (isClustered && closed(now.row(1)))
          throw new IllegalStateException(s"partition ${now.row(1)} comes back")
        rows += now
      }
      override def commit(): WriterCommitMessage = TaskRows(rows.toList)
      override def abort(): Unit = ()
      override def close(): Unit = ()
    }
}

/** Reads in one task; a limit is its own, and Spark's is gone then. */
private class MemoryScan(table: MemoryTable) extends ScanBuilder with SupportsPushDownLimit {

  private var limit = Int.MaxValue

  override def pushLimit(most: Int): Boolean = {
    limit = most
    true
  }

  override def isPartiallyPushed: Boolean = false

  override def build(): Scan = new Scan with Batch {
    override def readSchema: StructType = table.schema
    override def toBatch: Batch = this
    override def planInputPartitions: Array[InputPartition] =
      Array(MemoryRows(table.rows.take(limit).map(_.row)))
    override def createReaderFactory: PartitionReaderFactory = MemoryReaders
  }
}

private case class MemoryRows(rows: Seq[Seq[Any]]) extends InputPartition

private object MemoryReaders extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new PartitionReader[InternalRow] {
      private val rows = partition.asInstanceOf[MemoryRows].rows.iterator
      private var row: InternalRow = _
      override def next(): Boolean = rows.hasNext && {
        row = InternalRow.fromSeq(rows.next())
        true
      }
      override def get: InternalRow = row
      override def close(): Unit = ()
    }
}

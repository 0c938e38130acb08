package org.apache.spark.sql.aqepilot.facts

import java.util.{Collections, EnumSet, Map, Set}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{
  SupportsWrite,
  Table,
  TableCapability,
  TableCatalog,
  TableProvider
}
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, SortOrder, Transform}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{Row, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** A data source that wants the rows of a key together, in partitions of [[SizedSource.Bytes]]. */
class SizedSource extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType =
    StructType.fromDDL("k BIGINT, n BIGINT")

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: Map[String, String]
  ): Table = new SizedTable(schema)
}

object SizedSource {
  val Bytes = 8000L

  /** What each task of the latest write wrote. */
  @volatile var written: Seq[Seq[(Long, Long)]] = Nil
}

class SizedTable(override val schema: StructType) extends Table with SupportsWrite {
  override def name(): String = "sized"
  override def properties(): Map[String, String] =
    Collections.singletonMap(TableCatalog.PROP_PROVIDER, "Sized")
  override def capabilities(): Set[TableCapability] = EnumSet.of(TableCapability.BATCH_WRITE)
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new WriteBuilder {
    override def build(): Write = new SizedWrite
  }
}

class SizedWrite extends RequiresDistributionAndOrdering {
  override def requiredDistribution(): Distribution =
    Distributions.clustered(Array[Expression](Expressions.column("k")))
  override def requiredOrdering(): Array[SortOrder] = Array.empty
  override def advisoryPartitionSizeInBytes(): Long = SizedSource.Bytes

  override def toBatch: BatchWrite = new BatchWrite {
    override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory =
      new SizedWriters
    override def commit(messages: Array[WriterCommitMessage]): Unit =
      SizedSource.written = messages.toSeq.collect { case SizedRows(rows) => rows }
    override def abort(messages: Array[WriterCommitMessage]): Unit = SizedSource.written = Nil
  }
}

case class SizedRows(rows: Seq[(Long, Long)]) extends WriterCommitMessage

class SizedWriters extends DataWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DataWriter[InternalRow] =
    new DataWriter[InternalRow] {
      private val rows = Seq.newBuilder[(Long, Long)]
      override def write(row: InternalRow): Unit = rows += row.getLong(0) -> row.getLong(1)
      override def commit(): WriterCommitMessage = SizedRows(rows.result())
      override def abort(): Unit = ()
      override def close(): Unit = ()
    }
}

/** A data source's own partition size holds against a policy's target. */
class SourceSizeSuite extends AnyFunSuite with BeforeAndAfterAll {

  private lazy val spark = SparkSession
    .builder()
    .master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.extensions", "io.aqepilot.AqePilotExtension")
    .config("spark.sql.shuffle.partitions", "12")
    .config("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    .config("spark.sql.adaptive.coalescePartitions.minPartitionSize", "1")
    .config("spark.aqepilot.policies", "test")
    .getOrCreate()

  override def afterAll(): Unit = {
    spark.stop()
    SparkSession.clearActiveSession()
    SparkSession.clearDefaultSession()
  }

  private val rows = (0L until 3000L).map(n => (n % 500, n))

  /** The rows that each task wrote, the plain way or with a policy. */
  private def written(policy: String): Seq[Seq[(Long, Long)]] = {
    spark.conf.set("spark.aqepilot.policy.test.partition_coalescing", policy)
    spark.range(0, 3000, 1, 3).selectExpr("id % 500 AS k", "id AS n").write
      .format(classOf[SizedSource].getName).mode("append").save()
    assert(SizedSource.written.flatten.sorted === rows.sorted)
    SizedSource.written.map(_.sorted).sortBy(_.headOption)
  }

  /** The reason and the stage's facts of the latest decision. */
  private def decided(): Row = spark
    .sql(
      """SELECT reason, get_json_object(facts, '$.stage.requested_partition_bytes'),
        |  get_json_object(facts, '$.stage.is_write'), get_json_object(facts, '$.stage.write_format')
        |FROM aqepilot_decisions() WHERE policy = 'test' ORDER BY decision_id DESC LIMIT 1""".stripMargin
    )
    .head()

  test("a target is refused, a minimum is not") {
    val plain = written("NULL")
    assert(plain.size > 2 && plain.size < 12)
    val bytes = SizedSource.Bytes.toString

    val target = "named_struct('target_bytes', 1048576L, 'min_partitions', 1)"
    assert(written(target) === plain)
    assert(decided() === Row("SOURCE_SIZE", bytes, "true", "sized"))

    val minimum = "named_struct('min_partitions', 12)"
    assert(written(minimum).size === 12)
    assert(decided() === Row("APPLIED", bytes, "true", "sized"))
  }
}

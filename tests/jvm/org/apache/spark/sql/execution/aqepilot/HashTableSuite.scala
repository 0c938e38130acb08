package org.apache.spark.sql.execution.aqepilot

import org.apache.spark.memory.{SparkOutOfMemoryError, TaskMemoryManager, UnifiedMemoryManager}
import org.apache.spark.sql.aqepilot.spark.HashTable
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.execution.joins.HashedRelation
import org.apache.spark.sql.types._
import org.apache.spark.{SparkConf, SparkException}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** Against Spark's own hash relations: the least memory in which one is built. */
class HashTableSuite extends AnyFunSuite with BeforeAndAfterAll {

  private val Page = 1L << 20

  /** Where there is no SparkEnv, a relation asks a new SparkConf for the size of its pages. */
  override def beforeAll(): Unit = System.setProperty("spark.buffer.pageSize", Page.toString)
  override def afterAll(): Unit = System.clearProperty("spark.buffer.pageSize")

  private def text(length: Int)(n: Int): Any =
    s"$n-".padTo(length, 'x')

  private val nested = StructType(
    Seq(StructField("a", LongType), StructField("b", StructType(Seq(StructField("c", StringType)))))
  )

  /** Types of the columns, the first of which is the key, and their values by the number of the row. */
  private val shapes: Seq[(String, Seq[(DataType, Int => Any)])] = Seq(
    "one bigint, dense" -> Seq(LongType -> ((n: Int) => n.toLong)),
    "one bigint, sparse" -> Seq(LongType -> ((n: Int) => n * 1000003L)),
    "one int" -> Seq(IntegerType -> ((n: Int) => n * 7)),
    "four ints" -> Seq.fill(4)(IntegerType -> ((n: Int) => n)),
    "bigint, ten doubles" -> ((LongType -> ((n: Int) => n * 1000003L)) +:
      Seq.fill(10)(DoubleType -> ((n: Int) => n / 4.0))),
    "one string of 10" -> Seq(StringType -> text(10) _),
    "bigint, string of 1000" -> Seq(LongType -> ((n: Int) => n.toLong), StringType -> text(1000) _),
    "string of 40, three decimals" -> ((StringType -> text(40) _) +:
      Seq.fill(3)(DecimalType(30, 2) -> ((n: Int) => BigDecimal(n)))),
    "bigint, array of 8 bigints" -> Seq(
      LongType -> ((n: Int) => n.toLong),
      ArrayType(LongType) -> ((n: Int) => Seq.fill(8)(n.toLong))
    ),
    "string of 10, nested struct" -> Seq(
      StringType -> text(10) _,
      nested -> ((n: Int) => org.apache.spark.sql.Row(n.toLong, org.apache.spark.sql.Row(s"v$n")))
    ),
    "bigint that repeats ten times, date" -> Seq(
      LongType -> ((n: Int) => n / 10L),
      DateType -> ((n: Int) => java.sql.Date.valueOf("2026-01-01"))
    )
  )

  private def row(columns: Seq[(DataType, Int => Any)], n: Int): InternalRow = {
    val converters = columns.map(c => CatalystTypeConverters.createToCatalystConverter(c._1))
    InternalRow.fromSeq(columns.zip(converters).map { case ((_, value), to) => to(value(n)) })
  }

  /** Whether Spark builds its relation in so much memory. */
  private def isBuiltIn(memory: Long, rows: Seq[InternalRow], key: DataType): Boolean = {
    val conf = new SparkConf(false).set("spark.buffer.pageSize", Page.toString)
    val manager = new TaskMemoryManager(new UnifiedMemoryManager(conf, memory, 0, 1), 0)
    val keys = Seq(BoundReference(0, key, nullable = true))
    try {
      HashedRelation(rows.iterator, keys, taskMemoryManager = manager).close()
      true
    } catch {
      case _: SparkOutOfMemoryError => false
      case e: SparkException
          if e.getMessage.contains("ACQUIRE") || e.getMessage.contains("acquire") =>
        false
    } finally manager.cleanUpAllAllocatedMemory()
  }

  private def least(rows: Seq[InternalRow], key: DataType): Long = {
    var (low, high) = (0L, 1L << 29)
    while (high - low > (1L << 18)) {
      val middle = (low + high) / 2
      if (isBuiltIn(middle, rows, key)) high = middle else low = middle
    }
    low
  }

  shapes.foreach { case (name, columns) =>
    test(s"an estimate holds what a hash table takes, and is no more than four times that: $name") {
      val toUnsafe = UnsafeProjection.create(columns.map(_._1).toArray[DataType])
      // Spark's arrays and pages have just doubled, or are about to.
      Seq(33000, 50000, 66000).foreach { count =>
        val rows = (0 until count).map(n => toUnsafe(row(columns, n)).copy())
        val bytes = rows.map(_.getSizeInBytes.toLong).sum
        val needed = least(rows, columns.head._1)
        val estimate = HashTable.bytes(bytes.toDouble, count.toDouble, HashTable.Growth)
        info(
          s"$count rows of ${bytes / count} bytes: ${needed / count} bytes each, estimate ${estimate / count}"
        )
        assert(needed <= estimate + Page)
        assert(estimate <= 4 * needed)
      }
    }
  }
}

package org.apache.spark.sql.aqepilot.history

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files

import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** The file of a pack: what it comes to, and what is wrong with one that cannot be read. */
class PackSuite extends AnyFunSuite with BeforeAndAfterAll {

  private val folder = Files.createTempDirectory("aqepilot-pack").toFile
  private val file = new File(folder, "pack.parquet")

  private lazy val spark = SparkSession.builder().master("local[1]")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private def write(rows: Map[String, Any]*): Unit =
    PackFiles.write(PackFiles.rows(spark, rows), file)

  private def run(signature: Long, more: (String, Any)*) =
    Map[String, Any]("signature" -> signature, "form" -> "SAME", "kind" -> "PLAN") ++ more

  private def seen(pack: Pack, signature: Long, kind: String = Kind.Plan): Option[PastRuns] =
    pack.find(signature, 0L, kind, now = 0L).collect { case Seen(past) => past }

  private def refused(): String = intercept[NotAPack](PackFiles.read(file)).getMessage

  test("the runs of a signature are summed up, by kind") {
    write(
      run(7, "run_ms" -> 10L, "row_count" -> 100L, "bytes" -> 1000L, "input_bytes" -> 50L),
      run(7, "run_ms" -> 30L, "row_count" -> 300L, "failures" -> 1, "spilled_bytes" -> 5L),
      run(7, "run_ms" -> 20L, "row_count" -> 200L, "failures" -> 0, "spilled_bytes" -> 0L),
      run(7, "kind" -> "SHUFFLE", "run_ms" -> 10L, "shuffle_bytes" -> 64L, "partitions" -> 8) ++
        Map("max_partition_bytes" -> 40L, "median_partition_bytes" -> 10L, "task_ms" -> 500L) ++
        Map("read_bytes" -> (2L << 20), "read_rows" -> 1000L, "peak_memory_bytes" -> 77L) ++
        Map("row_count" -> 30L, "input_rows" -> 120L),
      run(7, "kind" -> "QUERY", "run_ms" -> 1L, "task_ms" -> 400L),
      run(7, "kind" -> "QUERY", "run_ms" -> 2L, "task_ms" -> 100L, "decided" -> true),
      run(-3, "run_ms" -> 5L, "row_count" -> 1L)
    )
    val pack = PackFiles.read(file)
    assert(pack.signatures === 4)
    assert(pack.newest === Some(30L))
    val plan = seen(pack, 7).get
    assert((plan.runs, plan.newest, plan.failedRuns, plan.isSame) === ((3, 30L, 1, true)))
    assert((plan.rowsP50, plan.rowsMax) === ((Some(200L), Some(300L))))
    assert((plan.bytesP50, plan.bytesMax, plan.inputBytesP50) ===
      ((Some(1000L), Some(1000L), Some(50L))))
    assert(plan.spilledRatio === Some(0.5))
    assert((plan.shuffleBytesP50, plan.reduction, plan.millisPerMb) === ((None, None, None)))
    val shuffle = seen(pack, 7, Kind.Shuffle).get
    assert((shuffle.shuffleBytesP50, shuffle.partitionsP50) === ((Some(64L), Some(8))))
    assert((shuffle.maxPartitionRatio, shuffle.millisPerMb) === ((Some(4.0), Some(250.0))))
    assert((shuffle.microsPerRow, shuffle.reduction) === ((Some(500.0), Some(0.25))))
    assert(shuffle.peakMemoryMax === Some(77L))
    val query = seen(pack, 7, Kind.Query).get
    assert((query.taskMillisP50, query.decidedTaskMillisP50) === ((Some(400L), Some(100L))))
    assert((query.runs, query.decidedRuns) === ((2, 1)))
    assert(seen(pack, -3).get.rowsP50 === Some(1L))
    assert(seen(pack, 8) === None)
  }

  test("an empty pack has no signatures") {
    PackFiles.write(PackFiles.rows(spark, Seq(run(1))).where("false"), file)
    assert(PackFiles.read(file).signatures === 0)
  }

  test("a pack of another version is none") {
    write(run(1), run(2, "version" -> 2))
    assert(refused() === "its version is 2, and this aqepilot reads version 1")
  }

  test("a file without the columns that every row has is no pack") {
    spark.range(3).toDF("signature").repartition(1).createOrReplaceTempView("other")
    PackFiles.write(spark.table("other"), file)
    assert(refused() === "it has no column version, form, kind")
  }

  test("a pack may lack the other columns, and have more") {
    val all = PackFiles.rows(spark, Seq(run(1, "run_ms" -> 3L)))
    PackFiles.write(
      all.select((PackFiles.needed.map(_._1) :+ "run_ms").map(col): _*)
        .withColumn("of_later", lit("x")),
      file
    )
    val past = seen(PackFiles.read(file), 1).get
    assert((past.runs, past.rowsP50, past.decidedRuns) === ((1, None, 0)))
  }

  test("kinds of a later version are passed over") {
    write(run(1, "kind" -> "WRITE"), run(2))
    assert(PackFiles.read(file).signatures === 1)
  }

  test("what is no file of Parquet, or is cut, fails") {
    write(run(1))
    val good = Files.readAllBytes(file.toPath)
    Seq(Array.empty[Byte], "no pack".getBytes(UTF_8), good.take(good.length / 2)).foreach { bytes =>
      Files.write(file.toPath, bytes)
      assertThrows[Exception](PackFiles.read(file))
    }
  }

  test("a folder is no pack") {
    val message = intercept[NotAPack](PackFiles.read(folder)).getMessage
    assert(message === "it is a folder, and a pack is one file")
  }

  test("rows that are not sorted by signature are told") {
    val builder = new PackBuilder
    builder.add(2, isSame = true, Kind.Plan, MeasuredRun(1))
    val message = intercept[NotAPack](builder.add(1, isSame = true, Kind.Plan, MeasuredRun(1)))
    assert(message.getMessage === "its rows are not sorted by signature")
  }

  test("above the bound the newest signatures are kept, and all that are held") {
    val builder = new PackBuilder(most = 100)
    (0 until 1000).foreach { n =>
      // The newest are anywhere.
      builder.add(n.toLong, isSame = true, Kind.Plan, MeasuredRun(time = (n * 7919L) % 1000))
      if (n % 20 == 0) builder.hold(n.toLong, isSame = true, until = 1L, reason = "slower")
    }
    val pack = builder.pack
    assert(pack.signatures === 100)
    val kept = (0 until 1000).filter { n =>
      pack.find(n.toLong, 0L, Kind.Plan, now = 2L).isDefined
    }
    assert(kept === (0 until 1000).filter(n => (n * 7919L) % 1000 >= 900))
    assert(pack.held.size === 50)
  }

  test("100,000 signatures: their memory, and the time of a look-up, are printed") {
    val count = 100000
    val rows: DataFrame = spark.range(0, count.toLong * 2, 1, 1).selectExpr(
      "1 AS version",
      "xxhash64(id div 2) AS signature",
      "IF(id % 2 = 0, 'SAME', 'SHAPE') AS form",
      "'PLAN' AS kind",
      "id AS run_ms",
      "id AS row_count",
      "id AS bytes"
    )
    PackFiles.write(rows, file)
    def used() = {
      System.gc()
      Runtime.getRuntime.totalMemory - Runtime.getRuntime.freeMemory
    }
    val before = used()
    val began = System.nanoTime()
    val pack = PackFiles.read(file)
    val millis = (System.nanoTime() - began) / 1000000
    val mb = (used() - before) / (1 << 20)
    assert(pack.signatures === 2 * count)
    val signatures = rows.where("form = 'SAME'").select("signature").limit(10000)
    val known = signatures.collect().map(_.getLong(0))
    (1 to 20).foreach(_ => known.foreach(pack.find(_, 0L, Kind.Plan, 0L)))
    val begun = System.nanoTime()
    known.foreach(s => assert(pack.find(s, 0L, Kind.Plan, 0L).isDefined))
    val micros = (System.nanoTime() - begun) / 1000.0 / known.length
    info(s"$count signatures in two forms: read in $millis ms, $mb MB, a look-up $micros us")
  }
}

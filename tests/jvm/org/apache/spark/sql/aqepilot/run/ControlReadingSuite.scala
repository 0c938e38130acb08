package org.apache.spark.sql.aqepilot.run

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, StandardCopyOption}
import java.util.concurrent.atomic.{AtomicInteger, AtomicReference}
import java.util.concurrent.{CountDownLatch, Executors, TimeUnit}

import org.apache.hadoop.fs.{FSDataInputStream, Path, RawLocalFileSystem}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.settings.Mode
import org.scalatest.funsuite.AnyFunSuite

import io.aqepilot.AqePilotExtension

/** A file system that does not answer while the latch is closed. */
class HangingFileSystem extends RawLocalFileSystem {
  override def getUri: java.net.URI = java.net.URI.create("hangs:///")
  override def getScheme: String = "hangs"
  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    val latch = HangingFileSystem.latch.get
    val waits = latch.getCount > 0
    if (waits) HangingFileSystem.waiting.incrementAndGet()
    latch.await()
    if (waits) HangingFileSystem.waiting.decrementAndGet()
    super.open(new Path(path.toUri.getPath), bufferSize)
  }
}

object HangingFileSystem {
  val latch = new AtomicReference(new CountDownLatch(0))
  val waiting = new AtomicInteger
}

class ControlReadingSuite extends AnyFunSuite {

  private val folder = Files.createTempDirectory("aqepilot-control").toFile
  private val file = new File(folder, "control.json")

  private def write(version: Int, rules: String): Unit = {
    val text = s"""{"format": 1, "version": $version, "rules": [$rules]}"""
    val written = Files.createTempFile(folder.toPath, "written", "")
    Files.write(written, text.getBytes(UTF_8))
    Files.move(
      written,
      file.toPath,
      StandardCopyOption.ATOMIC_MOVE,
      StandardCopyOption.REPLACE_EXISTING
    )
  }

  test("50 drivers that read while two writers replace the file see a whole one each time") {
    val off = """{"mode": "off", "policy": "sales"}"""
    write(0, off)
    val bad = new AtomicInteger
    val readers = (1 to 50).map { _ =>
      new Control(
        file.getPath,
        () => new String(Files.readAllBytes(file.toPath), UTF_8),
        1000,
        Mode.Off,
        "4.3.0",
        _ => ()
      )
    }
    val pool = Executors.newFixedThreadPool(8)
    (1 to 2).foreach(_ => pool.submit((() => (1 to 300).foreach(write(_, off))): Runnable))
    readers.foreach { reader =>
      pool.submit((
          () =>
            (1 to 50).foreach { _ =>
              reader.refresh()
              if (reader.problem.nonEmpty || reader.limits.rules.size != 1) bad.incrementAndGet()
            }
      ): Runnable)
    }
    pool.shutdown()
    assert(pool.awaitTermination(60, TimeUnit.SECONDS))
    assert(bad.get === 0)
    write(301, "")
    readers.foreach(_.refresh())
    assert(readers.forall(r => r.version.contains(301L) && r.limits.rules.isEmpty))
  }

  test("where the file system hangs no query waits, and what was read before holds") {
    write(1, """{"mode": "off", "policy": "sales"}""")
    HangingFileSystem.latch.set(new CountDownLatch(1))
    val began = System.nanoTime()
    val spark = SparkSession
      .builder()
      .master("local[1]")
      .withExtensions(new AqePilotExtension)
      .config("spark.ui.enabled", "false")
      .config("spark.hadoop.fs.hangs.impl", classOf[HangingFileSystem].getName)
      .config("spark.aqepilot.control", s"hangs://${file.getPath}")
      .config("spark.aqepilot.control.refresh", "1s")
      .config("spark.aqepilot.policies", "sales,other")
      .config("spark.aqepilot.policy.sales.shuffle_partitions", "3")
      .config("spark.aqepilot.policy.other.shuffle_partitions", "5")
      .getOrCreate()
    def modes = spark
      .sql("SELECT value FROM aqepilot_status() WHERE kind = 'policy' ORDER BY name")
      .collect()
      .map(_.getString(0))
      .toSeq
    def soon(condition: => Boolean): Unit = {
      val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60)
      while (!condition) {
        assert(System.nanoTime() < end, modes)
        Thread.sleep(50)
      }
    }
    try {
      assert(spark.range(100).groupBy("id").count().count() === 100)
      assert(System.nanoTime() - began < TimeUnit.SECONDS.toNanos(60))
      assert(modes === Seq("shadow", "shadow"))
      HangingFileSystem.latch.get.countDown()
      soon(modes == Seq("enforce", "off"))
      HangingFileSystem.latch.set(new CountDownLatch(1))
      soon(HangingFileSystem.waiting.get > 0) // who has passed the latch would see what is written
      write(2, "")
      Thread.sleep(2000)
      assert(modes === Seq("enforce", "off"))
      HangingFileSystem.latch.get.countDown()
      soon(modes == Seq("enforce", "enforce"))
    } finally spark.stop()
  }
}

package org.apache.spark.sql.aqepilot.history

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.Files
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.LoggedLines
import org.scalatest.BeforeAndAfterAll
import org.scalatest.funsuite.AnyFunSuite

/** What queries see of history, and how it is read. */
class HistorySuite extends AnyFunSuite with BeforeAndAfterAll {

  private val file = new File(Files.createTempDirectory("aqepilot-history").toFile, "pack.parquet")

  private lazy val spark = SparkSession.builder().master("local[1]")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()

  override def afterAll(): Unit = spark.stop()

  private val day = 86400000L
  private def now = System.currentTimeMillis()

  private def run(signature: Long, form: String, rows: Long, more: (String, Any)*) =
    Map[String, Any](
      "signature" -> signature,
      "form" -> form,
      "kind" -> "PLAN",
      "run_ms" -> now,
      "row_count" -> rows
    ) ++ more

  private def held(signature: Long, form: String, until: Long) =
    run(
      signature,
      form,
      0,
      "kind" -> "HELD",
      "held_until_ms" -> until,
      "reason" -> "2.0 times slower"
    )

  private def write(rows: Map[String, Any]*): Unit =
    PackFiles.write(PackFiles.rows(spark, rows), file)

  private def history(own: Boolean = false, read: () => Unit = () => ()): History = new History(
    spark.sparkContext,
    Some(file.getPath),
    path => PackFiles.status(new File(path)),
    { status =>
      read()
      PackFile.read(status, new Configuration)
    },
    if (own) Some(new OwnRuns) else None
  )

  private def refreshed(own: Boolean = false): History = {
    val made = history(own)
    made.refresh()
    assert(made.problem === None)
    made
  }

  private def rows(past: Past, same: Long, shape: Long): Option[(Boolean, Long)] =
    past.find(same, shape, Kind.Plan).collect { case Seen(runs) => (runs.isSame, runs.rowsP50.get) }

  private def why(past: Past, same: Long, shape: Long): Option[String] =
    past.find(same, shape, Kind.Plan).collect { case Withheld(held) => held.reason }

  test("runs of the same sub-plan go before those of its shape") {
    write(run(1, "SAME", 10), run(2, "SHAPE", 20), run(3, "SHAPE", 30))
    val past = refreshed().past
    assert(rows(past, 1, 2) === Some((true, 10L)))
    assert(rows(past, 9, 2) === Some((false, 20L)))
    assert(rows(past, 3, 9) === None)
    assert(!past.isEmpty)
  }

  test("what is held is not used until then, and says why") {
    write(
      run(1, "SAME", 10),
      held(1, "SAME", now + day),
      run(2, "SAME", 20),
      held(2, "SAME", now - day),
      run(3, "SHAPE", 30),
      held(3, "SHAPE", now + day)
    )
    val known = refreshed()
    val past = known.past
    assert(why(past, 1, 9) === Some("2.0 times slower"))
    assert(rows(past, 2, 9) === Some((true, 20L)))
    assert(why(past, 9, 3) === Some("2.0 times slower"))
    assert(known.held.map(_.signature).sorted === Seq(1L, 3L))
  }

  test(
    "a file that has changed is read, one that has not is not, and a query sees one state of it"
  ) {
    write(run(1, "SAME", 10))
    val read = new AtomicInteger
    val known = history(read = () => read.incrementAndGet())
    known.refresh()
    known.refresh()
    assert(read.get === 1)
    val begun = known.past
    assert(rows(begun, 1, 9) === Some((true, 10L)))
    write(run(1, "SAME", 11), run(4, "SAME", 40))
    file.setLastModified(now + 5000)
    known.refresh()
    assert(read.get === 2)
    assert(rows(begun, 1, 9) === Some((true, 10L)))
    assert(rows(begun, 4, 9) === None)
    assert(rows(known.past, 4, 9) === Some((true, 40L)))
  }

  test(
    "a file that is damaged or gone leaves what was read before, is told once, and is read when it is good again"
  ) {
    write(run(1, "SAME", 10))
    val good = Files.readAllBytes(file.toPath)
    val known = refreshed()
    def outage(change: => Unit) = LoggedLines.during { lines =>
      change
      file.setLastModified(now + 10000)
      known.refresh()
      known.refresh()
      assert(rows(known.past, 1, 9) === Some((true, 10L)))
      assert(known.problems.map(_.code) === Seq("HISTORY_UNREADABLE"))
      assert(known.problems.head.message.contains("the 1 signatures that were read before hold"))
      assert(lines.withContext.count(_._1.contains("HISTORY_UNREADABLE")) === 1)
      Files.write(file.toPath, good)
      known.refresh()
      assert(known.problems.isEmpty)
    }
    outage(Files.write(file.toPath, good.take(50)))
    outage(Files.write(file.toPath, "{}".getBytes(UTF_8)))
    outage(Files.delete(file.toPath))
  }

  test("where nothing was ever read there is no history, which is told") {
    file.delete()
    val known = history()
    known.refresh()
    assert(known.past.isEmpty)
    assert(known.problems.head.message.contains("there is no history"))
  }

  test("an application's own runs count from the second on, or where the pack has none") {
    write(run(1, "SAME", 10), run(3, "SAME", 30), held(3, "SAME", now + day))
    val known = refreshed(own = true)
    def add(same: Long, rows: Long) =
      known.add(same, same + 100, Kind.Plan, MeasuredRun(now, rows = Some(rows)))
    add(1, 11)
    add(2, 22)
    add(3, 33)
    assert(rows(known.past, 1, 101) === Some((true, 10L)))
    assert(rows(known.past, 2, 102) === Some((true, 22L)))
    assert(rows(known.past, 9, 102) === Some((false, 22L)))
    val begun = known.past
    assert(rows(begun, 1, 101) === Some((true, 10L)))
    add(1, 13)
    add(3, 33)
    assert(rows(begun, 1, 101) === Some((true, 10L)))
    assert(rows(known.past, 1, 101) === Some((true, 12L)))
    assert(why(known.past, 3, 103).isDefined)
    (1 to 20).foreach(n => add(1, n.toLong))
    assert(known.past.find(1, 101, Kind.Plan).collect { case Seen(p) => p.runs } === Some(10))
  }
}

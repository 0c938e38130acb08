package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.internal.SQLConf
import org.scalatest.funsuite.AnyFunSuite

class BySettingsSuite extends AnyFunSuite {

  private val key = "spark.sql.shuffle.partitions"

  private def settings(partitions: Int) = {
    val conf = new SQLConf
    conf.setConfString(key, partitions.toString)
    conf
  }

  test("equal settings are read once, whichever session has them, and others by themselves") {
    val partitions = new BySettings[Int]
    var reads = 0
    def of(conf: SQLConf) = partitions.of(conf) { c =>
      reads += 1
      c.numShufflePartitions
    }
    val (three, other) = (settings(3), settings(3))
    assert(Seq(three, other, three, settings(4), three, settings(4)).map(of) == Seq(
      3, 3, 3, 4, 3, 4
    ))
    assert(reads == 2)
  }

  test("a setting that a session changes is seen") {
    val partitions = new BySettings[Int]
    val conf = settings(3)
    def now = partitions.of(conf)(_.numShufflePartitions)
    assert(now == 3)
    conf.setConfString(key, "5")
    assert(now == 5)
    conf.unsetConf(key)
    assert(now == 200)
    conf.setConfString(key, "3")
    assert(now == 3)
  }

  test("what is kept does not change with the session's settings") {
    val partitions = new BySettings[SQLConf]
    val conf = settings(3)
    val kept = partitions.of(conf)(identity)
    conf.setConfString(key, "5")
    assert(kept.numShufflePartitions == 3)
  }
}

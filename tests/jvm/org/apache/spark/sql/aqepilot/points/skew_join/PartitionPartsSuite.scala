package org.apache.spark.sql.aqepilot.points.skew_join

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

/** Where the parts of a partition begin, over the sizes of its map tasks' outputs. */
class PartitionPartsSuite extends AnyFunSuite {

  private def starts(parts: Long, sizes: Long*) = PartitionParts.starts(sizes.toArray, parts).toSeq

  test("equal outputs make equal parts") {
    assert(starts(2, 10, 10, 10, 10) === Seq(0, 2))
    assert(starts(4, 10, 10, 10, 10) === Seq(0, 1, 2, 3))
  }

  test("empty outputs go with a neighbour") {
    assert(starts(2, 10, 0, 10, 10, 10) === Seq(0, 3))
    assert(starts(3, 0, 10, 0, 10, 0) === Seq(0, 3))
  }

  test("a large output is a part by itself") {
    assert(starts(3, 1, 100, 1) === Seq(0, 1, 2))
    assert(starts(2, 100, 1, 1, 1) === Seq(0, 1))
  }

  test("there are no more parts than outputs that are not empty") {
    assert(starts(1000000, 5, 5) === Seq(0, 1))
    assert(starts(5, 0, 7, 0) === Seq(0))
    assert(starts(5, 0, 0) === Seq(0))
    assert(starts(5) === Seq(0))
  }

  test("any sizes make as many parts as asked for or can be, none of them empty") {
    val random = new Random(1)
    (1 to 2000).foreach { _ =>
      val sizes = Array.fill(random.nextInt(12) + 1)(math.max(0, random.nextInt(30) - 9).toLong)
      val parts = random.nextInt(14) + 1
      val from = PartitionParts.starts(sizes, parts.toLong)
      assert(from.length === math.max(1, math.min(parts, sizes.count(_ > 0))))
      val groups = from.toSeq.zip(from.drop(1).toSeq :+ sizes.length)
      if (from.length > 1)
        groups.foreach { case (i, j) =>
          assert(sizes.slice(i, j).sum > 0, sizes.toSeq -> from.toSeq)
        }
    }
  }
}

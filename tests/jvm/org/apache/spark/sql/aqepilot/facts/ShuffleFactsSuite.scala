package org.apache.spark.sql.aqepilot.facts

import scala.util.Random

import org.apache.spark.util.Utils
import org.scalatest.funsuite.AnyFunSuite

class ShuffleFactsSuite extends AnyFunSuite {

  test("the median is Spark's, for any sizes") {
    val random = new Random(7)
    (1 to 2000).foreach { _ =>
      val bound = 1 + random.nextInt(if (random.nextBoolean()) 5 else 1000000)
      val sizes = Array.fill(1 + random.nextInt(60))(random.nextInt(bound).toLong)
      assert(ShuffleFacts.of(sizes).median === Utils.median(sizes, false), sizes.mkString(","))
    }
  }

  test("percentiles are the nearest rank") {
    val facts = ShuffleFacts.of((1 to 200).map(_.toLong).reverse.toArray)
    assert((facts.p90, facts.p99) === ((Some(180L), Some(198L))))
    assert(ShuffleFacts.of(Array(7L)).p99 === Some(7L))
    assert(ShuffleFacts.of(Array.empty[Long]).p90 === None)
  }

  test("the sizes that the facts are made of stay in their order") {
    val sizes = Array(3L, 1L, 2L)
    ShuffleFacts.of(sizes)
    assert(sizes.toSeq === Seq(3L, 1L, 2L))
  }

  test("sum, largest, share of the non-empty") {
    val facts = ShuffleFacts.of(Array(0L, 30L, 10L, 0L))
    assert(facts.total === 40)
    assert(facts.max === 30)
    assert(facts.nonEmptyRatio === Some(0.5))
  }

  test("a shuffle without partitions has no ratio") {
    assert(ShuffleFacts.of(Array.empty[Long]).nonEmptyRatio === None)
  }
}

package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.aqepilot.policy.{BoundedPolicy, Breaker}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.scalatest.funsuite.AnyFunSuite

/** The mistakes of people who write policies: each of these would run for seconds to centuries, or fill the driver. */
class MeterSuite extends AnyFunSuite with SampleFacts {

  private val partitions = (1L to 3000L).toArray
  private val millis = 1000L * 1000

  private def reason(text: String, budget: Long = 50): Reason =
    AskBudget.within(budget * millis)(compiled(text).eval(row(partitions.toIndexedSeq: _*))) match {
      case Left(failure) => failure.reason
      case Right(answer) => fail(s"$text answered $answer")
    }

  private val bytes = "side.bytes_by_partition_id"
  private val words = s"concat(join.type, '${"a," * 150}!')"
  private val fields = s"'${"(.*)," * 6}(.*);'"
  private val likes = s"'${"%a" * 20}%b'"

  private val slow = Seq(
    "a cross product of lambdas" ->
      s"string(exists($bytes, x -> exists($bytes, y -> exists($bytes, z -> x + y + z < 0))))",
    "a median within a lambda" ->
      s"string(size(filter($bytes, x -> x > sort_array($bytes)[1500])))",
    "a count for each partition" ->
      s"string(aggregate($bytes, 0L, (a, x) -> a + size(filter($bytes, y -> y < x))))",
    "an order that looks at all partitions" ->
      s"string(array_sort($bytes, (l, r) -> IF(exists($bytes, x -> x < 0), 1, 0))[0])",
    "rlike" -> s"string(rlike($words, $fields))",
    "regexp_replace" -> s"regexp_replace($words, $fields, '')",
    "regexp_extract" -> s"regexp_extract($words, $fields, 1)",
    "regexp_extract_all" -> s"regexp_extract_all($words, $fields, 1)[0]",
    "regexp_count" -> s"string(regexp_count($words, $fields))",
    "regexp_substr" -> s"regexp_substr($words, $fields)",
    "regexp_instr" -> s"string(regexp_instr($words, $fields))",
    "split" -> s"split($words, $fields)[0]",
    "a regular expression of facts" ->
      s"string(rlike($words, concat($fields, lower(join.type))))",
    "like" -> s"string($words LIKE $likes)",
    "ilike" -> s"string($words ILIKE $likes)",
    "like all" -> s"string($words LIKE ALL ('%', $likes))",
    "not like any" -> s"string($words NOT LIKE ANY ('%', $likes))"
  )

  slow.foreach { case (what, text) =>
    test(s"$what: ended after the budget") {
      val begun = AskBudget.now()
      assert(reason(text) == Reason.EvaluationDeadline)
      // The first evaluation in a JVM loads classes.
      assert(AskBudget.now() - begun < 5000 * millis)
    }
  }

  test("functions within functions are not evaluated more often at each level") {
    val deep = (1 to 40).foldLeft("join.type")((inner, i) => s"regexp_replace($inner, 'X$i', '')")
    AskBudget.within(60000 * millis) {
      assert(compiled(deep).eval(row(1)).map(_.toString) == Right("INNER"))
    }
  }

  test("values that grow are ended before they fill the driver") {
    Seq(
      s"string(size(transform($bytes, a -> transform($bytes, b -> a + b))))",
      s"aggregate($bytes, '', (all, b) -> concat(all, string(b), ' is a partition, '))",
      s"aggregate($bytes, join.type, (all, b) -> concat(all, all))",
      s"string(size(aggregate($bytes, array(0L), (all, b) -> concat(all, $bytes))))",
      s"string(hash(transform($bytes, b -> $bytes)))",
      s"to_json(transform($bytes, b -> $bytes))"
    ).foreach(text => assert(reason(text, budget = 60000) == Reason.EvaluationTooLarge, text))
  }

  test("what is cheap is not touched by what was dear before it") {
    AskBudget.within(500 * millis) {
      assert(compiled(slow.head._2).eval(row(partitions.toIndexedSeq: _*)).isLeft)
      assert(compiled("lower(join.type)").eval(row(1)).map(_.toString) == Right("inner"))
    }
  }

  test("an interrupted thread ends the evaluation and stays interrupted") {
    Thread.currentThread().interrupt()
    try {
      assert(reason(slow.head._2) == Reason.EvaluationFailed)
      assert(Thread.currentThread().isInterrupted)
    } finally Thread.interrupted()
  }

  test("a policy that costs too much three times is left alone for a while") {
    var now = 0L
    val policy = new BoundedPolicy(
      compiled(s"IF(side.max_bytes = 3000, ${slow.head._2}, 'cheap')"),
      new Breaker(3, 1000, () => now)
    )
    def ask(facts: Long*) =
      AskBudget.within(200 * millis)(policy.eval(row(facts: _*))).left.map(_.reason).map(_.toString)
    val dear = partitions.toIndexedSeq
    (1 to 3).foreach(_ => assert(ask(dear: _*) == Left(Reason.EvaluationDeadline)))
    assert(ask(1) == Left(Reason.EvaluationBreakerOpen))
    now = 1000
    assert(ask(1) == Right("cheap"))
    assert(ask(dear: _*) == Left(Reason.EvaluationDeadline))
    assert(ask(1) == Right("cheap"))
  }
}

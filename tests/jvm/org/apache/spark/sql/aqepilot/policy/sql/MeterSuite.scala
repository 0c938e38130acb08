package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.aqepilot.policy.{BoundedPolicy, Breaker, PolicyError}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.scalatest.funsuite.AnyFunSuite

/** What a text costs is bounded: each of these would run for seconds to centuries, or fill the driver. */
class MeterSuite extends AnyFunSuite with SampleFacts {

  private val partitions = (1L to 3000L).toArray
  private val millis = 1000L * 1000

  private def reason(text: String, budget: Long = 50): Reason =
    AskBudget.within(budget * millis)(compiled(text).eval(row(partitions.toIndexedSeq: _*))) match {
      case Left(failure) => failure.reason
      case Right(answer) => fail(s"$text answered $answer")
    }

  private val bytes = "side.bytes_by_partition_id"
  private val many = s"concat(join.type, '${"a" * 300}!')"
  private val backtracks = s"'${"a*" * 8}b'"

  private val slow = Seq(
    "nested lambdas" ->
      s"string(exists($bytes, x -> exists($bytes, y -> exists($bytes, z -> x + y + z < 0))))",
    "a lambda that sorts" ->
      s"string(array_sort($bytes, (l, r) -> IF(exists($bytes, x -> x < 0), 1, 0))[0])",
    "a fold" ->
      s"string(aggregate($bytes, 0L, (a, x) -> a + size(filter($bytes, y -> y < size($bytes)))))",
    "rlike" -> s"string(rlike($many, $backtracks))",
    "regexp_like" -> s"string(regexp_like($many, $backtracks))",
    "regexp_replace" -> s"regexp_replace($many, $backtracks, '')",
    "regexp_extract" -> s"regexp_extract($many, $backtracks, 1)",
    "regexp_extract_all" -> s"regexp_extract_all($many, $backtracks, 1)[0]",
    "regexp_count" -> s"string(regexp_count($many, $backtracks))",
    "regexp_substr" -> s"regexp_substr($many, $backtracks)",
    "regexp_instr" -> s"string(regexp_instr($many, $backtracks))",
    "split" -> s"split($many, $backtracks)[0]",
    "str_to_map" -> s"str_to_map($many, ',', $backtracks)['x']",
    "a regular expression of facts" ->
      s"string(rlike($many, concat('${"a*" * 8}', lower(join.type))))",
    "like" -> s"string($many LIKE '${"%a" * 20}%b')",
    "ilike" -> s"string($many ILIKE '${"%a" * 20}%b')",
    "like all" -> s"string($many LIKE ALL ('%', '${"%a" * 20}%b'))",
    "not like any" -> s"string($many NOT LIKE ANY ('%', '${"%a" * 20}%b'))",
    "levenshtein" -> s"string(levenshtein(array_join($bytes, 'x'), array_join($bytes, 'y')))",
    "a text in a text" ->
      s"string(contains(concat('${"a" * 20000}', join.type), '${"a" * 10000}b'))",
    "trim" -> s"trim(BOTH '${"a" * 10000}b' FROM concat('${"b" * 20000}', join.type))",
    "an exponent" -> "string(CAST(concat(join.type, '1e-99999999') AS DECIMAL(10, 2)))",
    "a thousand digits" -> s"string(CAST(concat(join.type, '${"1" * 1000}') AS DECIMAL(10, 2)))",
    "round" -> "string(round(side.max_bytes / 3D, 100000000))",
    "bround" -> "string(bround(side.max_bytes, -100000000))",
    "alternatives of nothing" -> s"string(join.type RLIKE '${"(|)" * 60}(?!)')",
    "nothing, repeated" ->
      s"string(join.type RLIKE '${(1 to 5).foldLeft("(?:)")((r, _) => s"(?:$r){999}")}')",
    "sorting" ->
      s"string(sort_array(${(1 to 7).foldLeft(bytes)((a, i) =>
          s"transform(array($a), a$i -> concat(a$i, a$i))[0]"
        )})[0])",
    "structs in a set" ->
      s"string(size(array_distinct(transform($bytes, b -> named_struct('b', b)))))",
    "structs in two sets" ->
      s"string(size(array_union(transform($bytes, b -> array(b)), transform($bytes, b -> array(-b)))))"
  )

  slow.foreach { case (what, text) =>
    test(s"$what: ended after the budget") {
      assert(reason(text) == Reason.EvaluationDeadline)
    }
  }

  test("functions within functions are not evaluated more often at each level") {
    val deep = (1 to 40).foldLeft("join.type")((inner, i) => s"regexp_replace($inner, 'X$i', '')")
    val text =
      s"concat($deep, string(levenshtein($deep, array_join(array_distinct(array($deep)), ''))))"
    AskBudget.within(60000 * millis) {
      assert(compiled(text).eval(row(1)).map(_.toString) == Right("INNER0"))
    }
  }

  test("a constant part that never ends is refused when the text is compiled") {
    val never = s"rlike('${"a" * 300}!', $backtracks)"
    Seq(s"string($never)", s"CASE WHEN side.max_bytes < 0 THEN 'A' ELSE string($never) END")
      .foreach(text => assert(refused(text).code == PolicyError.TooComplex, text))
  }

  /** The same value many times within the same value many times: large to who goes through it. */
  private def shared(from: String, times: Int, make: String) =
    (1 to times).foldLeft(from) { (inner, i) =>
      s"transform(array($inner), s$i -> $make(${Seq.fill(30)(s"s$i").mkString(", ")}))[0]"
    }

  test("values that grow are ended before they fill the driver") {
    def grown(from: String, times: Int) =
      (1 to times).foldLeft(from)((inner, _) => s"replace($inner, 'N', '${"N" * 20}')")
    Seq(
      grown("join.type", 6),
      s"string(size(transform($bytes, b -> ${grown("join.type", 4)})))",
      s"string(size(transform($bytes, a -> transform($bytes, b -> transform($bytes, c -> c)))))",
      s"replace(concat('${"a" * 10000}', join.type), 'a', '${"b" * 10000}')",
      s"string(hash(${shared("join.type", 6, "array")}))",
      s"to_json(${shared("struct(join.type)", 6, "array")})",
      s"CAST(${shared("join.type", 6, "array")} AS STRING)",
      s"transform(array(${shared("join.type", 4, "concat")}), v -> concat(${Seq.fill(40)("v").mkString(", ")}))[0]"
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

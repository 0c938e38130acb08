package org.apache.spark.sql.aqepilot.policy.sql

import scala.util.Random

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.types.{BooleanType, StringType}
import org.scalatest.funsuite.AnyFunSuite

class TextLimitsSuite extends AnyFunSuite with SampleFacts {
  import PolicyError.{TooComplex, TooLong}

  test("a text of 100 KB works") {
    val branches = (1 to 3000).map(i => s"WHEN side.max_bytes = $i THEN 'answer $i'\n").mkString
    val text = s"CASE ${branches}END"
    assert(text.length > 100000)
    assert(answer(text) == "answer 60")
  }

  test("a long comment or literal works up to 1 MiB, in UTF-8") {
    assert(answer("'a' -- " + "x" * 1000000) == "a")
    assert(answer("length('" + "x" * 1000000 + "') > 0", BooleanType) == true)
    assert(refused("'" + "x" * (1 << 20) + "'").code == TooLong)
    assert(refused("'" + "\u20ac" * 400000 + "'").code == TooLong)
  }

  private def nested(n: Int) = Seq(
    "brackets" -> ("(" * n + "'a'" + ")" * n),
    "functions" -> ("upper(" * n + "join.type" + ")" * n),
    "cases" -> ("CASE WHEN side.is_left THEN " * n + "'a'" + " END" * n),
    "nots" -> ("IF(" + "NOT " * n + "side.is_left, 'a', 'b')"),
    "signs" -> ("string(" + "- " * n + "side.max_bytes)"),
    "arrays" -> ("array(" * n + "'a'" + ")" * n + "[0]" * n),
    "sums" -> ("string(side.max_bytes" + " + 1" * n + ")"),
    "lambdas" -> ("transform(array('a'), x -> " * n + "'a'" + ")" * n + "[0]" * n)
  )

  nested(50).foreach { case (kind, text) =>
    test(s"50 levels of $kind work") {
      assert(compiled(text).eval(row(1, 2)).isRight)
    }
  }

  nested(20000).foreach { case (kind, text) =>
    test(s"20,000 levels of $kind are refused in no time, even deep in a small stack") {
      val started = System.nanoTime
      var error = Option.empty[PolicyError]
      val thread = new Thread(null, () => error = Some(refused(text)), "small", 256 << 10)
      thread.start()
      thread.join()
      assert(error.map(_.code).contains(TooComplex))
      assert(System.nanoTime - started < 30e9)
    }
  }

  test("comments and quotes that never close are refused before they are read") {
    val started = System.nanoTime
    Seq("/*a" * 300000, "'" + "\\'" * 300000, "\"" + "\\\"" * 300000)
      .foreach(text => assert(refused(text).code == PolicyError.Syntax))
    assert(System.nanoTime - started < 30e9)
  }

  test("10,000 values work, and more branches or values than that are refused in no time") {
    def branches(n: Int) =
      s"CASE ${(1 to n).map(i => s"WHEN side.max_bytes = $i THEN 'answer $i' ").mkString}END"
    def values(n: Int) =
      s"IF(side.max_bytes IN (${(1 to n).mkString(", ")}), 'answer 60', 'none')"
    assert(answer(values(10000)) == "answer 60")
    val started = System.nanoTime
    Seq(branches(12000), values(60000)).foreach(text => assert(refused(text).code == TooComplex))
    assert(System.nanoTime - started < 30e9)
  }

  test("sums, types and values without an end are refused before they are parsed") {
    Seq(
      s"string(${"1 ^ " * 60000}1)",
      s"CAST(null AS ${"array<" * 20000}int${">" * 20000})",
      s"string(side.max_bytes IN (${Seq.fill(160000)("7").mkString(", ")}))"
    ).foreach(text => assert(refused(text).code == TooComplex, text.take(30)))
  }

  test("brackets in quotes and comments do not nest") {
    val brackets = "(" * 1000
    assert(answer(s"IF(join.type = '$brackets', 'a', 'b') /* $brackets */ -- $brackets") == "b")
    assert(answer(s"'it\\'s $brackets'").toString.startsWith("it's"))
  }

  test("200 random texts: an answer, a failure or a refusal, never a throw") {
    val words =
      """CASE WHEN THEN ELSE END ( ) [ ] , ' " ` side.max_bytes join.type side . * -> x exists(
        |filter( 1 0.5 1e400 'a' / - NOT AND IN BETWEEN LIKE IS NULL CAST( AS int) aqepilot_bytes(
        |SELECT FROM -- /* \ ${x} ? :p ; INTERVAL DATE OVER upper( || :: @ # <=> ! ~ % X'1' 99999999999999999999
        |""".stripMargin.split("\\s+").toSeq ++ Seq("\n", "\u0000", "\ud83d", "\u6f22")
    val random = new Random(20261121)
    val codes = (1 to 200).map { _ =>
      val glue = if (random.nextBoolean()) " " else ""
      val text = Seq.fill(1 + random.nextInt(25))(words(random.nextInt(words.size))).mkString(glue)
      PolicyCompiler.compile(text, facts, BooleanType) match {
        case Left(error)   => error.code
        case Right(policy) => policy.eval(row(1, 2, 3)).fold(_ => "FAILED", _ => "ANSWERED")
      }
    }
    info(codes.groupBy(identity).map { case (code, all) => s"$code ${all.size}" }.mkString(", "))
    assert(!codes.contains(PolicyError.InternalError))
  }

  test("200 random expressions of the right grammar are answered, fail or are refused") {
    val random = new Random(20261122)
    def pick(all: String*) = all(random.nextInt(all.size))
    def expression(depth: Int): String =
      if (depth == 0) pick("side.max_bytes", "join.type", "1", "'a'", "NULL", "0.5", "side.is_left")
      else {
        def e = expression(random.nextInt(depth))
        pick(
          s"CASE WHEN $e THEN $e ELSE $e END",
          s"($e ${pick("+", "-", "*", "/", "%", "=", "<", "AND", "OR", "||", "<=>", "DIV")} $e)",
          s"$e IN ($e, $e)",
          s"$e BETWEEN $e AND $e",
          s"CAST($e AS ${pick("int", "string", "double", "boolean", "decimal(38, 2)", "binary")})",
          s"${pick("upper", "abs", "length", "not", "hash", "sqrt", "size", "md5")}($e)",
          s"coalesce($e, $e)",
          s"exists(side.bytes_by_partition_id, b -> $e < b)",
          s"element_at(side.bytes_by_partition_id, $e)",
          s"substring($e, $e, $e)"
        )
      }
    val outcomes = (1 to 200).map { _ =>
      PolicyCompiler.compile(s"string(${expression(4)})", facts, StringType) match {
        case Left(error)   => assert(error.code != PolicyError.InternalError, error); error.code
        case Right(policy) => policy.eval(row(1, 2, 3)).fold(_ => "FAILED", _ => "ANSWERED")
      }
    }
    info(outcomes.groupBy(identity).map { case (code, all) => s"$code ${all.size}" }.mkString(", "))
    assert(outcomes.count(_ == "ANSWERED") > 20)
  }

  test("200 random byte strings are refused or answered too") {
    val random = new Random(3)
    (1 to 200).foreach { _ =>
      val bytes = new Array[Byte](random.nextInt(200))
      random.nextBytes(bytes)
      PolicyCompiler.compile(new String(bytes, "ISO-8859-1"), facts, BooleanType) match {
        case Left(error)   => assert(error.code != PolicyError.InternalError)
        case Right(policy) => policy.eval(row(1))
      }
    }
  }
}

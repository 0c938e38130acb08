package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

class PolicyCompilerSuite extends AnyFunSuite with SampleFacts {
  import PolicyError._

  // text -> code, line, column
  private val refusals = Seq(
    ("", Empty, None, None),
    (" \n\t", Empty, None, None),
    ("upper(join.type", Syntax, Some(1), Some(16)),
    ("upper(\n  join.type,\n  ,'A')", Syntax, Some(3), Some(3)),
    ("'a'; DROP TABLE t", Syntax, Some(1), Some(4)),
    ("SELECT 'a'", Syntax, Some(1), None),
    ("join.kind", UnknownFact, Some(1), Some(1)),
    ("CASE -- why\n WHEN sides.max_bytes > 1 THEN 'A' END", UnknownFact, Some(2), Some(7)),
    ("side['nope']", UnknownFact, Some(1), Some(1)),
    ("exists(side.bytes_by_partition_id, b -> c > 5)", UnknownFact, Some(1), Some(41)),
    ("lenght(join.type)", UnknownFunction, Some(1), Some(1)),
    ("spark_catalog.default.f(1)", UnknownFunction, Some(1), Some(1)),
    ("upper(\n  sum(other.row_count))", NotScalar, Some(2), Some(3)),
    ("first(join.type)", NotScalar, Some(1), Some(1)),
    ("count(*)", NotScalar, Some(1), Some(1)),
    ("max(join.type) OVER ()", NotScalar, Some(1), Some(1)),
    ("row_number() OVER (ORDER BY 1)", NotScalar, Some(1), Some(1)),
    ("explode(array('a'))", NotScalar, Some(1), Some(1)),
    ("json_tuple(join.type, 'a')", NotScalar, Some(1), Some(1)),
    ("(SELECT 'a')", NotScalar, Some(1), Some(1)),
    ("upper((SELECT max(a) FROM t))", NotScalar, Some(1), Some(7)),
    ("IF(EXISTS(SELECT 1), 'a', 'b')", NotScalar, Some(1), None),
    ("IF('a' IN (SELECT c FROM t), 'a', 'b')", NotScalar, Some(1), Some(8)),
    ("struct(side.*).max_bytes", NotScalar, Some(1), Some(8)),
    ("string(rand())", NotPure, Some(1), Some(8)),
    ("uuid()", NotPure, Some(1), Some(1)),
    ("shuffle(array('a'))[0]", NotPure, Some(1), Some(1)),
    ("reflect('java.lang.System', 'nanoTime')", NotPure, Some(1), Some(1)),
    ("current_user", NotPure, Some(1), Some(1)),
    ("current_user()", NotPure, Some(1), Some(1)),
    ("current_database()", NotPure, Some(1), Some(1)),
    ("string(current_date)", NotPure, Some(1), Some(8)),
    ("string(now())", NotPure, Some(1), Some(8)),
    ("string(unix_timestamp())", NotPure, Some(1), Some(8)),
    ("string(TIMESTAMP 'now')", NotPure, Some(1), Some(8)),
    ("string(DATE 'today')", NotPure, Some(1), Some(8)),
    ("string(CAST('now' AS timestamp))", NotPure, Some(1), Some(8)),
    ("string(CAST(query.description AS timestamp))", NotPure, Some(1), Some(8)),
    ("string(from_json('{}', 'a timestamp'))", NotPure, Some(1), Some(8)),
    ("repeat('a', 1000000000)", FunctionNotAllowed, Some(1), Some(1)),
    ("lpad('a', 1000000000, 'b')", FunctionNotAllowed, Some(1), Some(1)),
    ("string(sequence(1, 1000000000))", FunctionNotAllowed, Some(1), Some(8)),
    ("typeof(1)", FunctionNotAllowed, Some(1), Some(1)),
    ("IDENTIFIER('repeat')('a', 1000000000)", FunctionNotAllowed, Some(1), Some(1)),
    ("IDENTIFIER('upper')('a')", FunctionNotAllowed, Some(1), Some(1)),
    ("IDENTIFIER('join.type')", FunctionNotAllowed, Some(1), Some(1)),
    (
      "transform(array(1), x -> IDENTIFIER('re' || 'peat')('a', 9))[0]",
      FunctionNotAllowed,
      Some(1),
      Some(26)
    ),
    ("string(round(side.max_bytes / 3D, 1024 * 1024))", FunctionNotAllowed, Some(1), Some(8)),
    ("string(ceil(side.non_empty_ratio, -5000))", FunctionNotAllowed, Some(1), Some(8)),
    (
      "string(size(array_distinct(transform(side.bytes_by_partition_id, b -> struct(b)))))",
      FunctionNotAllowed,
      Some(1),
      Some(13)
    ),
    (
      "string(arrays_overlap(array(array(1L)), array(side.bytes_by_partition_id)))",
      FunctionNotAllowed,
      Some(1),
      Some(8)
    ),
    ("1", WrongAnswerType, Some(1), Some(1)),
    ("  side.is_left", WrongAnswerType, Some(1), Some(3)),
    ("CASE WHEN side.is_left THEN 'A' ELSE 2 END", WrongAnswerType, Some(1), Some(1)),
    ("upper(side.bytes_by_partition_id)", InvalidExpression, Some(1), Some(1)),
    ("upper('a', 'b')", InvalidExpression, Some(1), Some(1)),
    ("upper(:p)", InvalidExpression, Some(1), Some(7)),
    ("string(1 / 0)", ConstantFails, None, None),
    ("string(CAST('x' AS int))", ConstantFails, None, None)
  )

  refusals.foreach { case (text, code, line, column) =>
    test(s"refused as $code: ${text.replace("\n", "\\n")}") {
      val error = refused(text)
      assert(error.code == code, error)
      assert(error.line == line, error)
      if (column.isDefined) assert(error.column == column, error)
      assert(error.message.nonEmpty && error.message.length < 700, error)
      Seq("'Project", "SQLSTATE", "== SQL", "ansi.enabled", "Facts").foreach { noise =>
        assert(!error.message.contains(noise), error)
      }
    }
  }

  test("an unknown fact comes with the nearest paths") {
    assert(refused("side.maxbytes").suggestions.head == "side.max_bytes")
    assert(refused("max_bytes").suggestions.toSet == Set("side.max_bytes", "other.max_bytes"))
    assert(refused("SIDE.MEDIAN_BYTE").suggestions == Seq("side.median_bytes"))
    assert(refused("other.nope").message.contains("other.max_bytes, other.row_count"))
    assert(refused("x" * 100000).suggestions.isEmpty)
  }

  test("an unknown function comes with the nearest that are allowed") {
    assert(refused("lenght('a')").suggestions == Seq("length"))
    assert(refused("aqepilot_byte('1m')").suggestions == Seq("aqepilot_bytes"))
    assert(!refused("repeet('a', 2)").suggestions.contains("repeat"))
  }

  test("NULL and typeless CASE are answers of every type") {
    assert(answer("NULL") == null)
    assert(answer("NULL", BooleanType) == null)
    assert(answer("CASE WHEN side.is_left THEN NULL END") == null)
  }

  test("numbers widen without loss, and nothing else is cast") {
    assert(answer("1", LongType) == 1L)
    assert(answer("0.5", DoubleType) == 0.5)
    assert(answer("side.max_bytes", DoubleType) == 60.0)
    assert(refused("side.max_bytes", IntegerType).code == WrongAnswerType)
    assert(refused("0.5", LongType).code == WrongAnswerType)
    assert(refused("'1'", LongType).code == WrongAnswerType)
    assert(refused("'true'", BooleanType).code == WrongAnswerType)
  }

  test("what policies are made of compiles and answers") {
    assert(answer("CASE WHEN side.max_bytes < aqepilot_bytes('64MB') THEN 'A' END") == "A")
    assert(answer("IF(side.max_bytes + 1 BETWEEN 3 AND 70, 'y', 'n')") == "y")
    assert(
      answer("IF(exists(side.bytes_by_partition_id, b -> b + 1 BETWEEN 3 AND 4), 'y', 'n')") == "y"
    )
    assert(answer("nullif(concat(join.type, 'x'), 'INNERx')") == null)
    assert(answer("aggregate(side.bytes_by_partition_id, 0L, (s, b) -> s + b)", LongType) == 66L)
    assert(answer("join.type IN ('INNER') AND other.row_count IS NULL", BooleanType) == true)
    assert(answer("SIDE.Max_Bytes > 5 * `side`.median_bytes", BooleanType) == true)
    assert(answer("get(side.bytes_by_partition_id, 100) IS NULL", BooleanType) == true)
    assert(answer("try_divide(1, 0) IS NULL", BooleanType) == true)
    assert(answer("try_cast(join.type AS int) IS NULL", BooleanType) == true)
    assert(answer("join.type RLIKE '^IN'", BooleanType) == true)
    assert(answer(
      "join.type LIKE 'I%E_' AND join.type LIKE ANY ('x', 'I%N%R')",
      BooleanType
    ) == true)
    assert(answer("regexp_replace(split(upper(join.type), 'n|E')[0], '[A-M]', 'a')") == "aNN")
    assert(answer("aggregate(array('a', 'b'), '', (all, t) -> concat(all, t))") == "ab")
    assert(answer("string(round(side.max_bytes, -1))") == "60")
    assert(answer("'a' AS decision") == "a")
  }

  test("a text may have lines and comments") {
    val text =
      """-- broadcast what is small
        |CASE /* bytes, not 'rows (( */
        |  WHEN side.max_bytes < 64 -- isn't it
        |  THEN 'SMALL'
        |END -- done""".stripMargin
    assert(answer(text) == "SMALL")
    assert(answer(text.replace("\n", "\r\n")) == "SMALL")
  }

  test("every code is described") {
    assert(refusals.map(_._2).toSet.subsetOf(PolicyError.Codes.map(_._1).toSet))
  }
}

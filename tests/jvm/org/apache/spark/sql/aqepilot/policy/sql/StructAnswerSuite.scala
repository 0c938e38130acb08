package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.aqepilot.points.join_selection.JoinSelectionPoint
import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{ArrayType, DoubleType, IntegerType, StructType}
import org.scalatest.funsuite.AnyFunSuite

/** Answers of several fields, of which a policy names some. */
class StructAnswerSuite extends AnyFunSuite with SampleFacts {
  import PolicyError._

  private val struct = StructType.fromDDL(
    "factor double, target_bytes bigint, most int, force boolean, splits array<int>"
  )

  /** Factor, target, most, force. */
  private def decided(text: String): Seq[Any] = answer(text, struct) match {
    case row: InternalRow =>
      (0 until 4).map(i => if (row.isNullAt(i)) null else row.get(i, struct(i).dataType))
    case null => Nil
  }

  test("fields that are not named are null, in whatever order the others come") {
    assert(decided("named_struct('most', 3, 'factor', 2.5)") === Seq(2.5, null, 3, null))
    assert(decided("named_struct('FORCE', true)") === Seq(null, null, null, true))
    assert(decided("named_struct('target_bytes', NULL)") === Seq(null, null, null, null))
  }

  test("the branches of a CASE need not name the same fields") {
    val text = "CASE WHEN side.max_bytes > %d THEN named_struct('factor', 2) " +
      "WHEN side.max_bytes > 20 THEN named_struct('most', 7, 'force', false) END"
    assert(decided(text.format(50)) === Seq(2.0, null, null, null))
    assert(decided(text.format(60)) === Seq(null, null, 7, false))
    assert(decided(text.replace("> 20", "> 99").format(60)) === Nil)
    assert(decided("IF(true, NULL, named_struct('most', 1))") === Nil)
    val otherwise =
      "coalesce(IF(side.is_left, named_struct('most', 1), NULL), named_struct('most', 2))"
    assert(decided(otherwise) === Seq(null, null, 1, null))
  }

  test("facts and lambdas make values; arrays are taken") {
    val text = "named_struct('splits', transform(side.bytes_by_partition_id, b -> int(b)), " +
      "'target_bytes', 2 * side.median_bytes)"
    answer(text, struct) match {
      case row: InternalRow =>
        assert(row.getArray(4).toIntArray() === Array(1, 2, 3, 60))
        assert(row.getLong(1) === 6L)
    }
  }

  Seq(
    ("named_struct('facto', 2.0)", UnknownField),
    ("CASE WHEN side.is_left THEN named_struct('most', 1, 'a', 2) END", UnknownField),
    ("named_struct('most', 'many')", WrongAnswerType),
    ("named_struct('most', 3L)", WrongAnswerType),
    ("named_struct('force', 1)", WrongAnswerType),
    ("named_struct('splits', array('a'))", WrongAnswerType),
    ("named_struct('most', 1, 'MOST', 2)", InvalidExpression),
    ("named_struct('most')", InvalidExpression),
    ("named_struct(join.type, 2)", InvalidExpression),
    ("'force'", WrongAnswerType),
    ("3.0", WrongAnswerType)
  ).foreach { case (text, code) =>
    test(s"refused with $code: $text") {
      val error = refused(text, struct)
      assert(error.code === code, error)
      assert(error.line.contains(1))
    }
  }

  private val worded = JoinSelectionPoint.answer

  private def words(text: String): Seq[String] = answer(text, worded) match {
    case row: InternalRow => (0 until 2).map(i => if (row.isNullAt(i)) null else row.getString(i))
    case null             => Nil
  }

  test("the main field alone stands for the struct, also beside structs") {
    assert(words("'BROADCAST'") === Seq("BROADCAST", null))
    assert(words("CASE WHEN side.is_left THEN join.type END") === Seq("INNER", null))
    assert(words("CASE WHEN NOT side.is_left THEN 'BROADCAST' END") === Nil)
    val both = "CASE WHEN side.max_bytes > %d THEN 'A' ELSE named_struct('build_side', 'B') END"
    assert(words(both.format(50)) === Seq("A", null))
    assert(words(both.format(60)) === Seq(null, "B"))
  }

  test("a value of another type than the main field's is refused, with its place") {
    val error = refused("CASE WHEN side.is_left THEN 7 END", worded)
    assert(error.code === WrongAnswerType)
    assert(error.line.contains(1))
  }

  test("an answer may have either of two types") {
    def kind(text: String) =
      PolicyCompiler.compile(text, facts, DoubleType, ArrayType(IntegerType)).map(_.answer)
    assert(kind("2 * side.max_bytes") === Right(DoubleType))
    assert(kind("array(2, 1)") === Right(ArrayType(IntegerType)))
    assert(kind("NULL").isRight)
    assert(kind("'first'").left.map(_.code) === Left(WrongAnswerType))
  }

  test("a mistyped field is told its nearest name and its place") {
    val error = refused("CASE WHEN side.is_left\n  THEN named_struct('facto', 2.0) END", struct)
    assert(error.suggestions === Seq("factor"))
    assert(error.line.contains(2) && error.column.contains(8), error)
    assert(error.message.contains("did you mean factor? Known: factor, target_bytes"))
  }

  test("a struct that is no answer is Spark's own") {
    val text = "CASE WHEN named_struct('x', side.max_bytes).x > 50 THEN 'A' END"
    assert(answer(text) === "A")
  }
}

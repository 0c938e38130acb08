package org.apache.spark.sql.aqepilot.policy.python

import org.apache.spark.sql.aqepilot.points.join_selection.JoinSelectionPoint
import org.apache.spark.sql.aqepilot.points.skew_join.SkewJoinPoint
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class PythonAnswerSuite extends AnyFunSuite {

  private def wrong(json: String, dataType: DataType): String =
    intercept[PythonAnswer.WrongAnswer](PythonAnswer.of(json, dataType)).getMessage

  test("None, words, numbers and whole orders become Catalyst values") {
    assert(PythonAnswer.of("null", StringType) === null)
    assert(PythonAnswer.of("\"BROADCAST\"", StringType) === UTF8String.fromString("BROADCAST"))
    assert(PythonAnswer.of("3", DoubleType) === 3.0)
    assert(PythonAnswer.of("NaN", DoubleType).asInstanceOf[Double].isNaN)
    assert(PythonAnswer.of("8", IntegerType) === 8)
    val order = PythonAnswer.of("[2, 0, 1]", ArrayType(IntegerType)).asInstanceOf[ArrayData]
    assert(order.toIntArray().toSeq === Seq(2, 0, 1))
  }

  test("a mapping becomes the struct, fields that it leaves out are null") {
    val row = PythonAnswer
      .of(
        """{"skew_factor": 2, "left_splits": [1, null, 3], "force": true}""",
        SkewJoinPoint.answer
      )
      .asInstanceOf[InternalRow]
    val at = SkewJoinPoint.answer.fieldIndex _
    assert(row.getDouble(at("skew_factor")) === 2.0 && row.getBoolean(at("force")))
    assert(row.getArray(at("left_splits")).isNullAt(1) && row.isNullAt(at("right_splits")))
  }

  test("a decision's main field may stand alone") {
    val row = PythonAnswer.of("\"BROADCAST\"", JoinSelectionPoint.answer).asInstanceOf[InternalRow]
    assert(row.getString(JoinSelectionPoint.answer.fieldIndex("strategy")) === "BROADCAST")
    assert(row.isNullAt(JoinSelectionPoint.answer.fieldIndex("build_side")))
  }

  test("what is no such value is refused with its place, what it is and what is allowed") {
    assert(wrong("3", StringType) === "the answer is 3; it has to be a string, or None.")
    assert(wrong("true", IntegerType).contains("True or") === false)
    assert(wrong("8.0", LongType).contains("a whole number (an int)"))
    assert(wrong("3000000000", IntegerType).contains("from -2147483648 to 2147483647"))
    assert(wrong("1e400000", StringType).contains("a string"))
    assert(wrong("{\"a\": [", StringType).contains("no JSON"))
    assert(wrong("[0, \"x\"]", ArrayType(IntegerType)).startsWith("the answer, element 1 is \"x\""))
    assert(wrong("{\"skew_factors\": 1}", SkewJoinPoint.answer).contains("skew_factor"))
    assert(wrong(
      "{\"force\": 1}",
      SkewJoinPoint.answer
    ).startsWith("force is 1; it has to be True"))
    assert(wrong("\"" + "x" * 1000 + "\"", DoubleType).length < 200)
  }
}

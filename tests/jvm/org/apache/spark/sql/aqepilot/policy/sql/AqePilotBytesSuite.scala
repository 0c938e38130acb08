package org.apache.spark.sql.aqepilot.policy.sql

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.aqepilot.policy.PolicyError
import org.apache.spark.sql.catalyst.expressions.{Add, Literal, Rand}
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite

class AqePilotBytesSuite extends AnyFunSuite with SampleFacts {

  Seq(
    "64MB" -> (64L << 20),
    "64m" -> (64L << 20),
    " 1g " -> (1L << 30),
    "512k" -> (512L << 10),
    "512KB" -> (512L << 10),
    "2t" -> (2L << 40),
    "7p" -> (7L << 50),
    "0" -> 0L,
    "1024" -> 1024L,
    "10b" -> 10L
  ).foreach { case (size, bytes) =>
    test(s"'$size' is $bytes bytes, a literal") {
      assert(AqePilotBytes.build(Seq(Literal(size))) == Literal(bytes))
      assert(answer(s"aqepilot_bytes('$size')", LongType) == bytes)
    }
  }

  Seq("", "MB", "64 XB", "1.5g", "-1m", "64MBs", "9999999999999p", "9" * 20).foreach { size =>
    test(s"'$size' is refused, saying what is allowed") {
      val error = intercept[AnalysisException](AqePilotBytes.build(Seq(Literal(size))))
      Seq(s"'$size'", "'64MB', '1g', '512k'").foreach(part =>
        assert(error.getMessage.contains(part))
      )
    }
  }

  test("no, two, null, numeric and changing arguments are refused at their place") {
    Seq(
      "aqepilot_bytes()" -> 1,
      "aqepilot_bytes('1m', '2m')" -> 1,
      "aqepilot_bytes(64)" -> 16,
      "aqepilot_bytes(NULL)" -> 16,
      "1 + aqepilot_bytes(join.type)" -> 20,
      "1 + aqepilot_bytes('sixty four')" -> 20
    ).foreach { case (text, column) =>
      val error = refused(text, LongType)
      assert(error.code == PolicyError.InvalidExpression, error)
      assert(error.message.contains("'64MB', '1g', '512k'"), error)
      assert(error.line.contains(1) && error.column.contains(column), error)
    }
    assertThrows[AnalysisException](AqePilotBytes.build(Seq(Rand(1L))))
    assertThrows[AnalysisException](AqePilotBytes.build(Seq(Add(Literal(1), Literal(2)))))
  }
}

package org.apache.spark.sql.aqepilot.policy

import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{Callable, Executors}

import org.apache.spark.sql.aqepilot.policy.sql.{PolicyCompiler, SampleFacts}
import org.apache.spark.sql.types.{BooleanType, LongType, StringType, StructType}
import org.scalatest.funsuite.AnyFunSuite

class CompiledPolicySuite extends AnyFunSuite with SampleFacts {

  private def failure(text: String): String =
    compiled(text).eval(row(1, 2, 3, 60)) match {
      case Left(EvaluationFailure(message, _)) => message
      case Right(answer)                       => fail(s"$text answered $answer")
    }

  test("what fails at run time is a failure with a short sentence, never a wrapped number") {
    Seq(
      "string(side.max_bytes + 9223372036854775807L)" -> "overflow",
      "string(CAST(side.max_bytes * 1000000000 AS int))" -> "overflow",
      "string(CAST(join.type AS int))" -> "INNER",
      "string(side.bytes_by_partition_id[10])" -> "10",
      "string(element_at(side.bytes_by_partition_id, 0))" -> "0",
      "string(1 / (side.max_bytes - 60))" -> "zero"
    ).foreach { case (text, hint) =>
      val message = failure(text)
      assert(message.toLowerCase.contains(hint.toLowerCase), text)
      assert(message.length <= 303 && !message.contains("\n") && !message.contains("ansi"), message)
    }
  }

  test("a failure leaves the policy usable") {
    val policy = compiled("string(10 / side.max_bytes)")
    assert(policy.eval(row(0)).isLeft)
    assert(policy.eval(row(5)).map(_.toString) == Right("2.0"))
  }

  /** Fifty strings that grow twentyfold, six times: gigabytes out of `from`. */
  private def fillsMemory(from: String) =
    (1 to 6).foldLeft(Seq.fill(50)(from).mkString("array(", ", ", ")")) { (inner, _) =>
      s"transform($inner, s -> concat(${Seq.fill(20)("s").mkString(", ")}))"
    } + "[0]"

  test("a policy that fills the memory fails, and the next one works") {
    assert(failure(fillsMemory("join.type")).contains("memory"))
    assert(answer("lower(join.type)") == "inner")
  }

  test("a branch that is not taken does not fail") {
    assert(answer("CASE WHEN side.max_bytes > 1 THEN 'A' ELSE string(1 / 0) END") == "A")
    assert(failure("CASE WHEN side.is_left THEN string(1 / 0) ELSE 'A' END").contains("zero"))
  }

  test("facts of another shape than the schema's are a failure") {
    val wrong = org.apache.spark.sql.catalyst.InternalRow(1, 2)
    assert(compiled("upper(join.type)").eval(wrong).isLeft)
  }

  test("8 threads with lambdas: 80,000 evaluations, each the right answer") {
    val policy = compiled(
      """aggregate(
        |  filter(side.bytes_by_partition_id, b -> b > side.median_bytes), 0L, (s, b) -> s + b
        |)""".stripMargin,
      LongType
    )
    val wrong = new AtomicInteger
    val threads = Executors.newFixedThreadPool(8)
    try {
      val tasks = new java.util.ArrayList[Callable[Unit]]
      (1 to 8).foreach { thread =>
        val facts = row((1L to 50L).map(_ * thread): _*)
        val expected = Right((27L to 50L).map(_ * thread).sum)
        tasks.add { () =>
          (1 to 10000).foreach(_ => if (policy.eval(facts) != expected) wrong.incrementAndGet())
        }
      }
      threads.invokeAll(tasks).forEach(_.get())
    } finally threads.shutdown()
    assert(wrong.get == 0)
  }

  test("the same facts have the same answer, whatever was asked between") {
    val policy =
      compiled("exists(side.bytes_by_partition_id, b -> b > 5 * side.median_bytes)", BooleanType)
    (1 to 1000).foreach { i =>
      assert(policy.eval(row(1, 2, 3, 60)) == Right(true))
      assert(policy.eval(row(i, i, i)) == Right(false))
    }
  }

  test("a policy tells which facts it reads") {
    val policy = compiled(
      "CASE WHEN exists(side.bytes_by_partition_id, b -> b > other.max_bytes) THEN join.type END"
    )
    val read = Seq("side.bytes_by_partition_id", "other.max_bytes", "join.type", "side", "join")
    val never = Seq("side.max_bytes", "other.max", "query", "query.execution_id", "joint")
    read.foreach(path => assert(policy.references(path), path))
    never.foreach(path => assert(!policy.references(path), path))
    assert(compiled("to_json(side)").references("side.bytes_by_partition_id"))
    assert(!compiled("IF(true, 'A', join.type)").references("join.type"))
    val between = compiled("IF(side.max_bytes + 1 BETWEEN 1 AND 2, 'A', 'B')")
    assert(between.references("side.max_bytes"))
  }

  test("an interrupted caller is told so, and the next one gets the policy") {
    val text = "'after an interrupt'"
    Thread.currentThread().interrupt()
    assertThrows[InterruptedException](compiled(text))
    assert(answer(text) == "after an interrupt")
  }

  test("two schemas, one text: each its own policy") {
    val swapped = StructType(facts.fields.reverse)
    val here = compiled("join.type")
    val there = PolicyCompiler.compile("join.type", swapped, StringType)
    assert(there.isRight && (there.map(_ eq here) == Right(false)))
  }
}

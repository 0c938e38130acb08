package org.apache.spark.sql.aqepilot.record

import org.scalatest.funsuite.AnyFunSuite

class CancelledSuite extends AnyFunSuite {

  private def is(text: String, failure: Throwable = null) =
    QueryRecorder.isCancelled(text, Option(failure))

  test("a query that somebody cancelled is told from one that failed") {
    assert(
      is("[SPARK_JOB_CANCELLED] Job 3 cancelled part of cancelled job group x SQLSTATE: XXKDA")
    )
    assert(
      is("org.apache.spark.SparkException: Job 3 cancelled because killed via the Web UI\n\tat x")
    )
    assert(is("[OPERATION_CANCELED] Operation has been canceled. SQLSTATE: HY008"))
    assert(is("x", new RuntimeException("y", new InterruptedException)))
    assert(is("x", new RuntimeException("y", new RuntimeException("Job 12 cancelled by z"))))
    assert(!is("Job aborted due to stage failure: Task 0 failed 4 times"))
    assert(!is("[USER_RAISED_EXCEPTION] a row says that Job 3 cancelled"))
    assert(!is("x", new RuntimeException("Could not execute broadcast in 300 secs")))
    assert(!is("java.lang.OutOfMemoryError: Java heap space"))
  }
}

package org.apache.spark.sql.aqepilot.spark

import org.scalatest.funsuite.AnyFunSuite

class FailOpenSuite extends AnyFunSuite {

  Seq[Throwable](
    new RuntimeException("x"),
    new NoSuchMethodError("createSkewPartitionSpecs"),
    new NoClassDefFoundError("org/apache/spark/Gone"),
    new StackOverflowError(),
    new OutOfMemoryError(),
    new MatchError(1)
  ).foreach { fault =>
    test(s"a ${fault.getClass.getSimpleName} leaves the caller with what it had") {
      assert(FailOpen("test", "incoming")(throw fault) === "incoming")
    }
  }

  test("the fault is handed on for the record") {
    assert(FailOpen.recover("test")(_.getMessage)(throw new LinkageError("why")) === "why")
  }

  test("a cancelled query stays cancelled") {
    intercept[InterruptedException](FailOpen("test", 1)(throw new InterruptedException))
    Thread.currentThread().interrupt()
    try intercept[IllegalStateException](FailOpen("test", 1)(throw new IllegalStateException))
    finally Thread.interrupted()
  }
}

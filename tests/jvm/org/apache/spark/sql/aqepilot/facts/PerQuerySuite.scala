package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.record.DecisionLog
import org.apache.spark.sql.execution.SQLExecution
import org.scalatest.funsuite.AnyFunSuite

class PerQuerySuite extends AnyFunSuite {

  test("what is remembered of a query is forgotten when its execution ends, though it is kept") {
    val spark = SparkSession.builder().master("local[1]").config("spark.ui.enabled", "false")
      .getOrCreate()
    try {
      val sc = spark.sparkContext
      DecisionLog.of(sc)
      val remembered = new PerQuery(() => new Object)
      val query = spark.range(3).queryExecution
      SQLExecution.withNewExecutionId(query, None) {
        val id = QueryFacts.executionId(sc)
        assert(remembered(id) eq remembered(id))
        assert(!remembered.isEmpty)
      }
      sc.listenerBus.waitUntilEmpty()
      assert(remembered.isEmpty)
      assert(remembered(None) ne remembered(None))
      assert(remembered.isEmpty)
      assert(query.logical != null)
    } finally {
      spark.stop()
      SparkSession.clearActiveSession()
      SparkSession.clearDefaultSession()
    }
  }
}

package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.spark.Calls
import org.scalatest.funsuite.AnyFunSuite

private class Caller {
  def outer(): Seq[(String, String)] = inner()
  private def inner(): Seq[(String, String)] = Calls.by(_ == classOf[Caller].getName)
}

class RddConversionSuite extends AnyFunSuite {

  private val scan = ("AdaptiveSparkPlanExec", "getFinalPhysicalPlan")

  private def isConversion(calls: (String, String)*) =
    RddConversion.isConversion((scan +: calls) :+ (("Dataset", "withAction")))

  test("df.rdd and checkpoints make an RDD, as lazy values of Scala or not") {
    Seq(
      "QueryExecution" -> "toRdd",
      "QueryExecution" -> "toRdd$lzycompute",
      "QueryExecution" -> "$anonfun$toRdd$1",
      "Dataset" -> "$anonfun$checkpoint$1",
      "Dataset" -> "checkpoint",
      "Dataset" -> "localCheckpoint"
    ).foreach(call => assert(isConversion(call), call))
  }

  test("the calls of some classes are found on the stack, the latest first") {
    assert(new Caller().outer().map(_._2) === Seq("inner", "outer"))
  }

  test("what is explained, collected or written does not") {
    Seq(
      "QueryExecution" -> "explainString",
      "QueryExecution" -> "executedPlan$lzycompute",
      "QueryExecution" -> "toRddOfOurs",
      "Dataset" -> "collectToPython",
      "Dataset" -> "toArrowBatchRdd",
      "DataFrameWriter" -> "save",
      "Checkpoint" -> "checkpoint"
    ).foreach(call => assert(!isConversion(call), call))
  }

  test("an RDD that a source makes to save a query is its own") {
    Seq("SaveIntoDataSourceCommand", "InsertIntoDataSourceCommand", "SupportsV1Write").foreach {
      saving => assert(!isConversion("QueryExecution" -> "toRdd", saving -> "run"), saving)
    }
  }
}

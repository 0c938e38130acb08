package org.apache.spark.sql.execution.adaptive

import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.SparkConf
import org.apache.spark.sql.execution.SparkPlan

/** The evaluator that Spark finds by name, on any thread; it hands on to the one that was left for it.
  *
  * Spark looks the name up with the thread's context class loader, and a query fails where that does not see
  * the class. So `CostEvaluatorInstall` defines this class and its companion in Spark's own class loader, where
  * they see nothing of aqepilot: they refer to Spark and Java alone.
  */
final class AqePilotCostEvaluator(running: SparkConf) extends CostEvaluator {

  private val evaluator = AqePilotCostEvaluator.get()(running)

  override def evaluateCost(plan: SparkPlan): Cost = evaluator.evaluateCost(plan)
}

/** Makes the evaluator of each adaptive plan. */
object AqePilotCostEvaluator extends AtomicReference[SparkConf => CostEvaluator]

package org.apache.spark.sql.execution.adaptive

import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.SparkConf
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf

/** The evaluator that Spark finds by name, on any thread; it hands on to the one that was left for it.
  *
  * Spark looks the name up with the thread's context class loader, and a query fails where that does not see
  * the class. So `CostEvaluatorInstall` defines this class and [[AqePilotCostEvaluator.Factory]] in Spark's own class
  * loader, where they see nothing of aqepilot: they refer to Spark and Java alone.
  */
final class AqePilotCostEvaluator(running: SparkConf) extends CostEvaluator {
  import AqePilotCostEvaluator.Factory

  private val evaluator = Factory.get().asInstanceOf[AnyRef] match {
    case make: Function1[_, _] => make.asInstanceOf[SparkConf => CostEvaluator](running)
    case _                     => sparks
  }

  override def evaluateCost(plan: SparkPlan): Cost = evaluator.evaluateCost(plan)

  /** Where nothing was left: an application can name this class without the extension. Whether local sorts count is
    * asked for since 4.3.
    */
  private def sparks: CostEvaluator = {
    val conf = SQLConf.get
    val make = classOf[SimpleCostEvaluator].getConstructors.head
    val settings = Seq(
      conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN),
      conf.getConfString(
        "spark.sql.adaptive.costEvaluator.countLocalSort.enabled",
        "false"
      ) == "true"
    )
    make.newInstance(settings.take(make.getParameterCount).map(Boolean.box): _*)
      .asInstanceOf[CostEvaluator]
  }
}

object AqePilotCostEvaluator {

  /** Makes the evaluator of each adaptive plan. Scala gives an object within an object no static methods, which SQL
    * could call: not even those that it inherits.
    */
  object Factory extends AtomicReference[SparkConf => CostEvaluator]
}

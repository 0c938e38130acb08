package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.internal.SQLConf

/** Of the cost evaluator that compares adaptive plans where `cost_evaluation` is on. */
object OurCosts {

  val setting = SQLConf.ADAPTIVE_CUSTOM_COST_EVALUATOR_CLASS

  /** A text, as to name the class would load it from our own class loader first. */
  val evaluator = "org.apache.spark.sql.execution.adaptive.AqePilotCostEvaluator"

  /** Whether the adaptive plans of a session are compared by it. */
  def compare(conf: SQLConf): Boolean = conf.getConf(setting).contains(evaluator)
}

package org.apache.spark.sql.aqepilot

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** The rules that Spark asks an extension for when it makes a session, which must not fail: where a vendor's Spark
  * lacks what a rule is made of, a rule that does nothing stands for it.
  */
object Registered {

  def logical(rule: => Rule[LogicalPlan]): Rule[LogicalPlan] =
    FailOpen[Rule[LogicalPlan]]("rule", NoLogicalRule)(rule)

  def physical(rule: => Rule[SparkPlan]): Rule[SparkPlan] =
    FailOpen[Rule[SparkPlan]]("rule", NoPhysicalRule)(rule)

  def strategy(strategy: => SparkStrategy): SparkStrategy =
    FailOpen[SparkStrategy]("strategy", NoStrategy)(strategy)
}

private object NoLogicalRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan
}

private object NoPhysicalRule extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = plan
}

private object NoStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = Nil
}

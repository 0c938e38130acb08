package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.FailOpen
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan

/** [[CoalesceShuffleReads]], or a rule that changes nothing where a vendor's Spark lacks the trait that it has:
  * Spark asks for the rule when it makes a session, which must not fail.
  */
object StageRule {
  def apply(): Rule[SparkPlan] = FailOpen[Rule[SparkPlan]]("stage rule", NoStageRule)(Linked.rule)

  /** A class of its own: the JVM links what a class refers to when it loads it. */
  private object Linked {
    def rule: Rule[SparkPlan] = CoalesceShuffleReads
  }
}

private object NoStageRule extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = plan
}

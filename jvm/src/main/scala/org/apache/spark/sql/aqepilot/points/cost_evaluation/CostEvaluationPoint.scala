package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, FateReader, Guards, Need, Verdict}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.types._

/** What a plan costs when AQE compares a re-plan with the plan it has.
  *
  * Stands beside Spark's `SimpleCostEvaluator`, or the evaluator that
  * `spark.sql.adaptive.customCostEvaluatorClass` names.
  */
object CostEvaluationPoint extends DecisionPoint[Double] {

  override val name: String = "cost_evaluation"

  override val builtIn: String = "SimpleCostEvaluator"

  override val summary: String =
    "the cost of a plan, by which AQE adopts a re-plan or keeps the plan it has"

  override val asked: String =
    "at each re-plan that differs from the current plan, for the current plan and then for the re-plan"

  override val facts: StructType = CostFacts.all.schema

  override val answer: DataType = DoubleType

  override val answerMeaning: String =
    "the plan's cost in shuffles, as in spark.cost: the cheaper plan runs, the re-plan when both cost the same"

  override def parse(answer: Any): Double = answer.asInstanceOf[Double]

  override def toAnswer(decision: Double): Any = decision

  override def judge(cost: Double, facts: FactsRow, guards: Guards): Verdict[Double] = {
    def refused(detail: String) = Verdict(None, Reason.OutOfRange, Some(detail))
    if (cost.isNaN || cost.isInfinite) refused(s"a cost of $cost cannot be compared")
    else if (cost < 0 && !facts.isTrue("conf.force_optimize_skewed_join"))
      refused(
        s"a cost of $cost is below 0, which Spark's own is only with forceOptimizeSkewedJoin"
      )
    else Verdict(Some(cost), Reason.Applied)
  }

  override def candidates(facts: FactsRow): Iterator[Double] =
    facts.double("spark.cost").iterator.flatMap { cost =>
      val others = facts.double("spark.current_cost").iterator
      Iterator(cost, cost + 1, cost - 1) ++ others.flatMap(c => Iterator(c - 1, c, c + 1)) ++
        Iterator.single(0.0)
    }

  override def fates: FateReader = CostFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.CostEvaluator", Some("evaluateCost")),
    Need("org.apache.spark.sql.execution.adaptive.SimpleCost"),
    Need("org.apache.spark.sql.execution.adaptive.SimpleCostEvaluator"),
    Need("org.apache.spark.sql.execution.adaptive.QueryStageExec", Some("getRuntimeStatistics"))
  )
}

package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.aqepilot.facts.OldFacts
import org.apache.spark.sql.aqepilot.decision.{DecisionPoint, FateReader, Guards, Need, Verdict}
import org.apache.spark.sql.aqepilot.facts.OldFacts.{fact, group}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.types._

/** What a plan costs when AQE compares a re-plan with the plan it has.
  *
  * Stands beside Spark's `SimpleCostEvaluator`, or the evaluator that
  * `spark.sql.adaptive.customCostEvaluatorClass` names.
  */
object CostEvaluationPoint extends DecisionPoint[Any] {

  override val name: String = "cost_evaluation"

  override val builtIn: String = "SimpleCostEvaluator"

  override val summary: String =
    "the cost of a plan, by which AQE adopts a re-plan or keeps the plan it has"

  override val asked: String =
    "at each re-plan that differs from the current plan, for the current plan and then for the re-plan"

  private def planFields: Seq[StructField] = Seq(
    fact("is_current", BooleanType, "whether it is the plan that runs now"),
    fact("shuffles", IntegerType, "shuffles that are not started"),
    fact(
      "new_shuffles",
      IntegerType,
      "of these, the ones that the current plan lacks: other keys, or over other tables"
    ),
    fact("broadcasts", IntegerType, "broadcasts that are not started"),
    fact("sort_merge_joins", IntegerType, "sort-merge joins that are not in a stage yet"),
    fact("shuffled_hash_joins", IntegerType, "shuffled hash joins that are not in a stage yet"),
    fact("broadcast_hash_joins", IntegerType, "broadcast hash joins that are not in a stage yet"),
    fact(
      "nested_loop_joins",
      IntegerType,
      "broadcast nested loop joins and Cartesian products that are not in a stage yet"
    ),
    fact("skew_joins", IntegerType, "joins, not in a stage yet, whose skewed partitions are split"),
    fact("local_sorts", IntegerType, "sorts within partitions that are not in a stage yet"),
    fact("finished_shuffles", IntegerType, "finished shuffles that it reads"),
    fact(
      "known_bytes",
      LongType,
      "uncompressed bytes of the finished shuffles, broadcasts and cached tables that it reads"
    ),
    fact(
      "estimated_bytes",
      LongType,
      "Spark's estimate of what the shuffles and broadcasts that are not started will carry, bytes; " +
        "null when there are none or one is not known"
    ),
    fact("scans", IntegerType, "tables, files and other leaves that are not read yet"),
    fact(
      "pruning_filters",
      IntegerType,
      "filters on these that prune partitions by what a broadcast of the plan holds (dynamic partition pruning)"
    )
  )

  override val facts: StructType = StructType(
    CommonFacts.fields ++ Seq(
      group("plan", "the plan that is asked about", planFields: _*),
      group(
        "current",
        "the plan that runs now; null facts when that is the one asked about",
        planFields: _*
      ),
      group(
        "spark",
        "what Spark makes of it without us",
        fact(
          "cost",
          DoubleType,
          "Spark's own cost of the plan, in shuffles: its shuffles, less 1,048,576 for each skew join " +
            "where spark.sql.adaptive.forceOptimizeSkewedJoin is on, plus 1/1,048,576 for each local " +
            "sort where counts_local_sorts; null when the application's own evaluator gives no such number"
        ),
        fact(
          "current_cost",
          DoubleType,
          "the same of the current plan; null when that is the one asked about"
        ),
        fact(
          "counts_local_sorts",
          BooleanType,
          "whether Spark counts local sorts between plans of as many shuffles; null before Spark 4.3"
        )
      )
    )
  )

  override val answer: DataType = DoubleType

  override val answerMeaning: String =
    "the plan's cost in shuffles, as in spark.cost: the cheaper plan runs, the re-plan when both cost the same"

  override def parse(answer: Any): Any = answer

  override def toAnswer(decision: Any): Any = decision

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] = {
    val cost = answer.asInstanceOf[Double]
    def refused(what: String) = Verdict(None, Reason.OutOfRange, Some(what))
    if (cost.isNaN || cost.isInfinite) refused(s"a cost of $cost cannot be compared")
    else if (cost < 0 && !facts.isTrue("conf.force_optimize_skewed_join"))
      refused(
        s"a cost of $cost is below 0, which Spark's own is only with forceOptimizeSkewedJoin"
      )
    else Verdict(Some(answer), Reason.Applied)
  }

  override def fates: FateReader = CostFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.CostEvaluator", Some("evaluateCost")),
    Need("org.apache.spark.sql.execution.adaptive.SimpleCost"),
    Need("org.apache.spark.sql.execution.adaptive.SimpleCostEvaluator"),
    Need("org.apache.spark.sql.execution.adaptive.QueryStageExec", Some("getRuntimeStatistics"))
  )
}

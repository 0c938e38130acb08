package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.aqepilot.facts.{Fact, Facts, PointFacts}

/** What the facts of `cost_evaluation` are read from.
  *
  * @param cost
  *   Spark's own in shuffles; None where the application's own evaluator gives no such number
  * @param countsLocalSorts
  *   whether Spark counts local sorts; None where it cannot
  * @param current
  *   the plan that runs now; None where that is the one asked about
  */
final private case class PlanToCost(
    work: PlanWork,
    cost: Option[Double],
    countsLocalSorts: Option[Boolean],
    current: Option[PlanToCost]
)

/** The facts of `cost_evaluation`. */
private object CostFacts {

  private val fact = Fact.of[PlanToCost]

  private val plan = new Facts[PlanToCost](
    fact.fixed("is_current", "whether it is the plan that runs now")(_.current.isEmpty),
    fact.fixed("shuffles", "shuffles that are not started")(_.work.shuffles.size),
    fact.fixed(
      "new_shuffles",
      "of these, the ones that the current plan lacks: other keys, or over other tables"
    )(p => p.current.fold(0)(c => p.work.shuffles.diff(c.work.shuffles).size)),
    fact.fixed("broadcasts", "broadcasts that are not started")(_.work.broadcasts),
    fact.fixed("sort_merge_joins", "sort-merge joins that are not in a stage yet")(
      _.work.sortMergeJoins
    ),
    fact.fixed("shuffled_hash_joins", "shuffled hash joins that are not in a stage yet")(
      _.work.shuffledHashJoins
    ),
    fact.fixed("broadcast_hash_joins", "broadcast hash joins that are not in a stage yet")(
      _.work.broadcastHashJoins
    ),
    fact.fixed(
      "nested_loop_joins",
      "broadcast nested loop joins and Cartesian products that are not in a stage yet"
    )(_.work.nestedLoopJoins),
    fact.fixed("skew_joins", "joins, not in a stage yet, whose skewed partitions are split")(
      _.work.skewJoins
    ),
    fact.fixed("local_sorts", "sorts within partitions that are not in a stage yet")(
      _.work.localSorts
    ),
    fact.fixed("finished_shuffles", "finished shuffles that it reads")(_.work.finishedShuffles),
    fact.fixed(
      "known_bytes",
      "uncompressed bytes of the finished shuffles, broadcasts and cached tables that it reads"
    )(_.work.knownBytes),
    fact.fixed(
      "estimated_bytes",
      "Spark's estimate of what the shuffles and broadcasts that are not started will carry, bytes; " +
        "null when there are none or one is not known"
    )(_.work.estimatedBytes),
    fact.fixed("scans", "tables, files and other leaves that are not read yet")(_.work.scans),
    fact.fixed(
      "pruning_filters",
      "filters on these that prune partitions by what a broadcast of the plan holds (dynamic partition pruning)"
    )(_.work.pruningFilters)
  )

  private val spark = new Facts[PlanToCost](
    fact.fixed(
      "cost",
      "Spark's own cost of the plan, in shuffles: its shuffles, less 1,048,576 for each skew join " +
        "where spark.sql.adaptive.forceOptimizeSkewedJoin is on, plus 1/1,048,576 for each local " +
        "sort where counts_local_sorts; null when the application's own evaluator gives no such number"
    )(_.cost),
    fact.fixed(
      "current_cost",
      "the same of the current plan; null when that is the one asked about"
    )(_.current.flatMap(_.cost)),
    fact.fixed(
      "counts_local_sorts",
      "whether Spark counts local sorts between plans of as many shuffles; null before Spark 4.3"
    )(_.countsLocalSorts)
  )

  val all: PointFacts[PlanToCost] = new PointFacts(
    fact.group("plan", "the plan that is asked about", plan)(p => p),
    fact.optionalGroup(
      "current",
      "the plan that runs now; null facts when that is the one asked about",
      plan
    )(_.current),
    fact.group("spark", "what Spark makes of it without us", spark)(p => p)
  )
}

package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.facts.{Beneath, Fact, Facts, PointFacts}
import org.apache.spark.sql.aqepilot.plans.joins.JoinFacts

/** The facts of `join_selection`. */
private object SelectionFacts {

  private val ofJoin = Fact.of[JoinToPlan]

  private val join = new Facts[JoinToPlan](
    JoinFacts.id,
    JoinFacts.joinType,
    JoinFacts.keyCount("number of equality keys; 0 for a join without"),
    JoinFacts.keyTypes("SQL types of the equality keys"),
    ofJoin.fixed(
      "can_merge",
      "whether a sort-merge join can run it: it has equality keys of types that can be sorted"
    )(_.canMerge),
    JoinFacts.hasCondition,
    JoinFacts.conditionCanThrow,
    ofJoin.fixed("condition", "the whole join condition, as SQL; null for none")(
      _.logical.condition.map(_.sql)
    ),
    ofJoin.fixed(
      "is_null_aware",
      "whether it is a NOT IN on one column that Spark runs by its own hash join for these " +
        "(spark.sql.optimizeNullAwareAntiJoin)"
    )(_.isNullAware),
    JoinFacts.leftHint("the user's hint on the left side"),
    JoinFacts.rightHint("the user's hint on the right side"),
    ofJoin.fixed("is_replan", "whether the query runs already")(_.isReplan),
    JoinFacts.sparkFaults,
    JoinFacts.isInPruningSide
  )

  private val ofSide = Fact.of[PlannedSide]

  private val side = new Facts[PlannedSide](
    JoinFacts.tables,
    ofSide.fixed(
      "size_in_bytes",
      "rows' size, uncompressed, bytes, as Spark has it: see estimate_from; columns that are not read are " +
        "left out"
    )(_.sizeInBytes),
    ofSide.fixed("row_count", "rows; null when Spark does not know")(_.rowCount),
    JoinFacts.rowBytes,
    ofSide(
      "estimate_from",
      "where size_in_bytes comes from: STAGE = measured, by a finished stage; STATISTICS = row counts of " +
        "the tables (ANALYZE TABLE, caches, local data); FILES = the files' sizes, compressed, whatever " +
        "filters leave; GUESS = a size that is not known, or the product that Spark takes for a join's"
    )(_.estimateFrom),
    ofSide.fixed("filters", "conditions of the filters beneath, as SQL, in plan order")(s =>
      Beneath.filters(s.plan)
    ),
    ofSide.fixed("join_count", "joins beneath, those in finished stages included")(s =>
      Beneath.joins(s.plan)
    ),
    ofSide.fixed(
      "distinct_count",
      "distinct values of the join's key on this side (column statistics); null when not known, without " +
        "equality keys, and with several"
    )(_.distinctCount),
    ofSide(
      "is_distributed",
      "whether it is known already that rows with equal keys are in one partition: a bucketed table, or a " +
        "shuffle, aggregate or window on the keys"
    )(_.isDistributed),
    ofSide(
      "is_sorted",
      "whether a finished stage or a bucketed table has its partitions sorted by the keys already"
    )(_.isSorted),
    ofSide.fixed(
      "max_bytes",
      "largest partition of the finished shuffle beneath, compressed bytes"
    )(
      _.shuffle.map(_.max)
    ),
    ofSide.fixed(
      "shuffle_bytes",
      "all partitions of the finished shuffle beneath, compressed bytes"
    )(
      _.shuffle.map(_.total)
    ),
    ofSide.fixed(
      "run_time_hint",
      "what Spark's own run-time rule, or a dynamic_join_selection policy, says of this side; null before " +
        "the query runs"
    )(_.runTimeHint),
    ofSide.fixed(
      "can_broadcast",
      "whether the join's type and condition let this side be broadcast"
    )(
      _.canBroadcast
    ),
    JoinFacts.canShuffleHash,
    ofSide(
      "broadcasts_by_size",
      "whether Spark broadcasts a side of this size (canBroadcastBySize): up to " +
        "spark.sql.autoBroadcastJoinThreshold or, measured, " +
        "spark.sql.adaptive.autoBroadcastJoinThreshold"
    )(_.broadcastsBySize),
    ofSide.fixed(
      "hashes_by_size",
      "whether Spark builds hash tables from a side of this size (canBuildLocalHashMapBySize)"
    )(_.hashesBySize),
    ofSide.fixed(
      "is_much_smaller",
      "whether it is smaller than the other side by spark.sql.shuffledHashJoinFactor (muchSmaller)"
    )(_.isMuchSmaller),
    JoinFacts.prunes,
    JoinFacts.signature,
    JoinFacts.history
  )

  private val spark = new Facts[JoinToPlan](
    ofJoin("strategy", "its strategy, in the words of this decision")(_.spark.map(_.strategy)),
    ofJoin("build_side", "LEFT or RIGHT; null where the strategy has none")(
      _.spark.flatMap(_.buildSide)
    ),
    ofJoin(
      "reason",
      "why: HINT (the user's), SIZE (a side is small enough to broadcast), MUCH_SMALLER (a hash table " +
        "rather than a sort), RUN_TIME (measured: Spark's own run-time rule), NULL_AWARE (NOT IN), " +
        "SORTABLE (neither is small), CROSS (nothing to sort by), LAST_RESORT (nothing else is possible)"
    )(_.sparkReason)
  )

  val all: PointFacts[JoinToPlan] = new PointFacts(
    ofJoin.group("join", "the join", join)(j => j),
    ofJoin.group("left", "the join's left side", side)(_.left),
    ofJoin.group("right", "the join's right side", side)(_.right),
    ofJoin.group("spark", "what Spark would do without us", spark)(j => j)
  )
}

package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.{
  AnswerField,
  DecisionPoint,
  FateReader,
  Guards,
  JoinWords,
  Need,
  Verdict,
  Word
}
import org.apache.spark.sql.aqepilot.facts.OldFacts.{fact, group}
import org.apache.spark.sql.aqepilot.facts.{CommonFacts, FactsRow, OldFacts}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

/** Which strategy and build side a join gets when it is planned.
  *
  * Stands beside Spark's planner strategy `JoinSelection`.
  */
object JoinSelectionPoint extends DecisionPoint[Any] with JoinWords {

  override val name: String = "join_selection"

  override val builtIn: String = "JoinSelection"

  override val summary: String =
    "the strategy and build side of a join, from what is estimated of its sides before they run"

  override val asked: String =
    "for each join, with or without equality keys, at the first planning and, as long as no side of it is " +
      "broadcast, at re-plans that know more of its sides"

  override val words: Seq[Word] = Seq(
    Word(
      Broadcast,
      "broadcast the build side: a broadcast hash join or, without equality keys, a broadcast nested loop join"
    ),
    Word(ShuffleHash, "shuffled hash join that builds from the build side"),
    Word(ShuffleMerge, "sort-merge join, not converted to a shuffled hash join later"),
    Word(ShuffleReplicate, "Cartesian product of the sides, filtered; inner and cross joins only")
  )

  private def sideFields: Seq[StructField] = Seq(
    OldFacts.tables,
    fact(
      "size_in_bytes",
      LongType,
      "rows' size, uncompressed, bytes, as Spark has it: see estimate_from; columns that are not read are " +
        "left out"
    ),
    fact("row_count", LongType, "rows; null when Spark does not know"),
    OldFacts.rowBytes,
    fact(
      "estimate_from",
      StringType,
      "where size_in_bytes comes from: STAGE = measured, by a finished stage; STATISTICS = row counts of " +
        "the tables (ANALYZE TABLE, caches, local data); FILES = the files' sizes, compressed, whatever " +
        "filters leave; GUESS = a size that is not known, or the product that Spark takes for a join's"
    ),
    fact(
      "filters",
      ArrayType(StringType),
      "conditions of the filters beneath, as SQL, in plan order"
    ),
    fact("join_count", IntegerType, "joins beneath, those in finished stages included"),
    fact(
      "distinct_count",
      LongType,
      "distinct values of the join's key on this side (column statistics); null when not known, without " +
        "equality keys, and with several"
    ),
    fact(
      "is_distributed",
      BooleanType,
      "whether it is known already that rows with equal keys are in one partition: a bucketed table, or a " +
        "shuffle, aggregate or window on the keys"
    ),
    fact(
      "is_sorted",
      BooleanType,
      "whether a finished stage or a bucketed table has its partitions sorted by the keys already"
    ),
    fact(
      "max_bytes",
      LongType,
      "largest partition of the finished shuffle beneath, compressed bytes"
    ),
    fact(
      "shuffle_bytes",
      LongType,
      "all partitions of the finished shuffle beneath, compressed bytes"
    ),
    fact(
      "run_time_hint",
      StringType,
      "what Spark's own run-time rule, or a dynamic_join_selection policy, says of this side; null before " +
        "the query runs"
    ),
    fact(
      "can_broadcast",
      BooleanType,
      "whether the join's type and condition let this side be broadcast"
    ),
    fact(
      "can_shuffle_hash",
      BooleanType,
      "whether the join's type and keys let a shuffled hash join build from this side"
    ),
    fact(
      "broadcasts_by_size",
      BooleanType,
      "whether Spark broadcasts a side of this size (canBroadcastBySize): up to " +
        "spark.sql.autoBroadcastJoinThreshold or, measured, " +
        "spark.sql.adaptive.autoBroadcastJoinThreshold"
    ),
    fact(
      "hashes_by_size",
      BooleanType,
      "whether Spark builds hash tables from a side of this size (canBuildLocalHashMapBySize)"
    ),
    fact(
      "is_much_smaller",
      BooleanType,
      "whether it is smaller than the other side by spark.sql.shuffledHashJoinFactor (muchSmaller)"
    ),
    OldFacts.prunes
  )

  override val facts: StructType = StructType(
    CommonFacts.fields ++ Seq(
      group(
        "join",
        "the join",
        fact("id", LongType, "stable for the life of the query, unique in the driver"),
        OldFacts.joinType,
        fact("key_count", IntegerType, "number of equality keys; 0 for a join without"),
        fact("key_types", ArrayType(StringType), "SQL types of the equality keys"),
        fact(
          "can_merge",
          BooleanType,
          "whether a sort-merge join can run it: it has equality keys of types that can be sorted"
        ),
        fact(
          "has_condition",
          BooleanType,
          "whether there is a condition beside the equality keys"
        ),
        OldFacts.conditionCanThrow,
        fact("condition", StringType, "the whole join condition, as SQL; null for none"),
        fact(
          "is_null_aware",
          BooleanType,
          "whether it is a NOT IN on one column that Spark runs by its own hash join for these " +
            "(spark.sql.optimizeNullAwareAntiJoin)"
        ),
        fact("left_hint", StringType, "the user's hint on the left side"),
        fact("right_hint", StringType, "the user's hint on the right side"),
        fact("is_replan", BooleanType, "whether the query runs already"),
        OldFacts.sparkFaults("the join"),
        OldFacts.isInPruningSide
      ),
      group("left", "the join's left side", sideFields: _*),
      group("right", "the join's right side", sideFields: _*),
      group(
        "spark",
        "what Spark would do without us",
        fact("strategy", StringType, "its strategy, in the words of this decision"),
        fact("build_side", StringType, "LEFT or RIGHT; null where the strategy has none"),
        fact(
          "reason",
          StringType,
          "why: HINT (the user's), SIZE (a side is small enough to broadcast), MUCH_SMALLER (a hash table " +
            "rather than a sort), RUN_TIME (measured: Spark's own run-time rule), NULL_AWARE (NOT IN), " +
            "SORTABLE (neither is small), CROSS (nothing to sort by), LAST_RESORT (nothing else is possible)"
        )
      )
    )
  )

  override val answer: StructType = StructType(
    Seq(
      AnswerField.bare(
        fact("strategy", StringType, "the strategy, in Spark's hint words; null = Spark's")
      ),
      fact(
        "build_side",
        StringType,
        "LEFT or RIGHT: the side that is broadcast or that the hash table is built from; null = the smaller " +
          "of those that the join admits, as Spark does"
      )
    )
  )

  override val answerMeaning: String =
    "how to run the join; the strategy alone, as a word, will do; an answer that is null keeps Spark's choice"

  override def parse(answer: Any): Any = answer

  override def toAnswer(decision: Any): Any = decision

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] =
    SelectionLegality.verdict(answer.asInstanceOf[InternalRow], facts, guards)

  override val movesRows: Boolean = true

  override def fates: FateReader = SelectionFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.catalyst.plans.logical.JoinHint", Some("leftHint")),
    Need("org.apache.spark.sql.execution.SparkStrategies", Some("JoinSelection")),
    Need("org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$", Some("unapply")),
    Need(
      "org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper",
      Some("canBuildBroadcastLeft")
    )
  )
}

package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.{
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
import org.apache.spark.sql.types._

/** Which strategy a join of finished shuffles gets, asked per side.
  *
  * Stands beside Spark's `DynamicJoinSelection` (3.5 to 4.2) and, on 4.3, `DemoteBroadcastHashJoin` with
  * `ConvertSortMergeJoinToShuffledHashJoin`.
  */
object DynamicJoinSelectionPoint extends DecisionPoint[Any] with JoinWords {

  override val name: String = "dynamic_join_selection"

  override val builtIn: String =
    "DynamicJoinSelection (3.5 to 4.2); DemoteBroadcastHashJoin and " +
      "ConvertSortMergeJoinToShuffledHashJoin (4.3)"

  override val summary: String =
    "the join strategy of a join while the query runs, from the measured sizes of its sides"

  override val asked: String =
    "for each side with a finished shuffle of each equi-join, left then right, whenever what is known " +
      "of the join has changed"

  override val words: Seq[Word] = Seq(
    Word(
      Broadcast,
      "broadcast this side and build the hash table of a broadcast hash join from it"
    ),
    Word(
      ShuffleHash,
      "shuffled hash join that builds from this side, even where Spark would broadcast by size"
    ),
    Word(
      PreferShuffleHash,
      "shuffled hash join that builds from this side, unless Spark broadcasts a side by its size"
    ),
    Word(
      ShuffleMerge,
      "sort-merge join, neither broadcast by size nor converted to a shuffled hash join"
    ),
    Word(NoBroadcastHash, "this side is not broadcast by its size; all else is Spark's choice")
  )

  private def sideFields: Seq[StructField] = Seq(
    fact("is_left", BooleanType, "whether it is the join's left side"),
    OldFacts.tables,
    fact("is_finished", BooleanType, "whether its shuffle has run, with statistics"),
    fact(
      "is_plain_stage",
      BooleanType,
      "whether nothing stands between the shuffle and the join (Spark's own rule looks at these " +
        "only); null when there is no shuffle beneath"
    ),
    fact("is_broadcast", BooleanType, "whether it is a broadcast stage already"),
    fact("size_in_bytes", LongType, "rows' size, uncompressed, bytes; measured for a plain stage"),
    fact("row_count", LongType, "rows; measured for a plain stage, null when not known"),
    OldFacts.rowBytes,
    fact("num_partitions", IntegerType, "partitions of the shuffle"),
    fact("num_mappers", IntegerType, "map tasks that wrote the shuffle")
  ) ++ OldFacts.sizesOfOne ++ Seq(
    fact("non_empty_ratio", DoubleType, "share of the partitions that are not empty, 0 to 1"),
    fact("can_broadcast", BooleanType, "whether the join type lets this side be broadcast"),
    fact(
      "can_shuffle_hash",
      BooleanType,
      "whether the join's type and keys let a shuffled hash join build from this side"
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
        fact("key_count", IntegerType, "number of equality keys"),
        fact("key_types", ArrayType(StringType), "SQL types of the keys, e.g. bigint"),
        fact(
          "keys_are_orderable",
          BooleanType,
          "whether the keys can be sorted, for a sort-merge join"
        ),
        fact("has_condition", BooleanType, "whether there is a condition beside the equality keys"),
        OldFacts.conditionCanThrow,
        fact("left_hint", StringType, "the user's strategy hint on the left side, in Spark's word"),
        fact("right_hint", StringType, "the user's strategy hint on the right side"),
        OldFacts.sparkFaults("the join"),
        OldFacts.isInPruningSide
      ),
      group("side", "the side that is asked about", sideFields: _*),
      group("other", "the other side; null facts while its shuffle runs", sideFields: _*),
      group(
        "spark",
        "what Spark would do without us",
        fact(
          "hint",
          StringType,
          "what Spark's own rule says to this side, given the user's hints only; null = nothing"
        ),
        fact(
          "conversion",
          StringType,
          "4.3: side (LEFT, RIGHT) that Spark would build from if it turned a sort-merge join here " +
            "into a shuffled hash join, NONE if it would not; null when not predictable and before 4.3"
        )
      )
    )
  )

  override val answer: DataType = StringType

  override val answerMeaning: String = "a join hint for this side, in Spark's words"

  override def parse(answer: Any): Any = answer

  override def toAnswer(decision: Any): Any = decision

  override def judge(answer: Any, facts: FactsRow, guards: Guards): Verdict[Any] =
    JoinLegality.verdict(answer.toString, facts, guards)

  override val movesRows: Boolean = true

  override def fates: FateReader = JoinFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.LogicalQueryStage", Some("physicalPlan")),
    Need("org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec", Some("mapStats")),
    Need("org.apache.spark.MapOutputStatistics", Some("bytesByPartitionId")),
    Need("org.apache.spark.sql.catalyst.plans.logical.JoinHint", Some("leftHint")),
    Need(
      "org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper",
      Some("canBuildBroadcastLeft")
    )
  ) ++ RunTimeJoinRules.needs
}

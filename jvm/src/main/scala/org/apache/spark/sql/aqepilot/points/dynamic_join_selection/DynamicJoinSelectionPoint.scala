package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.decision.{
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  Verdict,
  Word
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** Which strategy a join of finished shuffles gets, asked per side.
  *
  * Stands beside Spark's `DynamicJoinSelection` (3.5 to 4.2) and, on 4.3, `DemoteBroadcastHashJoin` with
  * `ConvertSortMergeJoinToShuffledHashJoin`.
  */
object DynamicJoinSelectionPoint extends DecisionPoint[SideHint] {

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

  override val facts: StructType = DynamicJoinFacts.all.schema

  override val answer: DataType = StringType

  override val answerMeaning: String = "a join hint for this side, in Spark's words"

  override def parse(answer: Any): SideHint = SideHint(answer.toString)

  override def toAnswer(decision: SideHint): Any = UTF8String.fromString(decision.word)

  override def judge(answer: SideHint, facts: FactsRow, guards: Guards): Verdict[SideHint] =
    JoinLegality.verdict(answer, facts, guards)

  override def candidates(facts: FactsRow): Iterator[SideHint] =
    words.iterator.map(word => SideHint(word.word))

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

package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.JoinWords._
import org.apache.spark.sql.aqepilot.decision.{
  AnswerField,
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  Verdict,
  Word
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.{StringType, StructType}

/** Which strategy and build side a join gets when it is planned.
  *
  * Stands beside Spark's planner strategy `JoinSelection`.
  */
object JoinSelectionPoint extends DecisionPoint[SelectionDecision] {

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

  override val facts: StructType = SelectionFacts.all.schema

  override val answer: StructType = StructType(
    Seq(
      AnswerField.bare(
        AnswerField("strategy", StringType, "the strategy, in Spark's hint words; null = Spark's")
      ),
      AnswerField(
        "build_side",
        StringType,
        "LEFT or RIGHT: the side that is broadcast or that the hash table is built from; null = the smaller " +
          "of those that the join admits, as Spark does"
      )
    )
  )

  override val answerMeaning: String =
    "how to run the join; the strategy alone, as a word, will do; an answer that is null keeps Spark's choice"

  override def parse(answer: Any): SelectionDecision =
    SelectionDecision.of(answer.asInstanceOf[InternalRow])

  override def toAnswer(decision: SelectionDecision): Any = decision.row

  override def judge(
      answer: SelectionDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[SelectionDecision] = SelectionLegality.verdict(answer, facts, guards)

  override def candidates(facts: FactsRow): Iterator[SelectionDecision] = {
    val building = for {
      strategy <- Iterator(Broadcast, ShuffleHash)
      side <- Iterator(BuildRight, BuildLeft)
    } yield SelectionDecision(Some(strategy), Some(side))
    building ++ Iterator(ShuffleMerge, ShuffleReplicate).map(s => SelectionDecision(Some(s), None))
  }

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

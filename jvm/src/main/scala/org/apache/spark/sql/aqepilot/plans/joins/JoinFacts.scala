package org.apache.spark.sql.aqepilot.plans.joins

import java.util.Locale

import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  Fact,
  HistoryFacts,
  JoinSide,
  SignatureFacts,
  Tables
}
import org.apache.spark.sql.aqepilot.plans.promises.CanThrow
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}

/** The facts of a join that several points have. */
object JoinFacts {

  /** Spark's SQL name of a join type, e.g. `LEFT OUTER`. */
  def name(joinType: JoinType): String = joinType match {
    case _: ExistenceJoin => "EXISTENCE"
    case other            => other.sql
  }

  private val ofJoin = Fact.of[KnownJoin]

  val id: Fact[KnownJoin] =
    ofJoin.fixed("id", "stable for the life of the query, unique in the driver")(_.state.id)

  val joinType: Fact[KnownJoin] = ofJoin.fixed(
    "type",
    "INNER, CROSS, LEFT OUTER, RIGHT OUTER, FULL OUTER, LEFT SEMI, LEFT ANTI or EXISTENCE"
  )(join => name(join.joinType))

  def keyCount(meaning: String = "number of equality keys"): Fact[KnownJoin] =
    ofJoin.fixed("key_count", meaning)(_.leftKeys.length)

  def keyTypes(meaning: String): Fact[KnownJoin] =
    ofJoin.fixed("key_types", meaning)(_.leftKeys.map(_.dataType.sql.toLowerCase(Locale.ROOT)))

  val hasCondition: Fact[KnownJoin] =
    ofJoin.fixed("has_condition", "whether there is a condition beside the equality keys")(
      _.condition.isDefined
    )

  val conditionCanThrow: Fact[KnownJoin] = ofJoin.fixed(
    "condition_can_throw",
    "whether that condition could throw for some rows, by a division under ANSI, say"
  )(_.condition.exists(CanThrow(_)))

  def leftHint(meaning: String): Fact[KnownJoin] =
    ofJoin.fixed("left_hint", meaning)(join => JoinState.word(join.state.userHint.leftHint))

  def rightHint(meaning: String): Fact[KnownJoin] =
    ofJoin.fixed("right_hint", meaning)(join => JoinState.word(join.state.userHint.rightHint))

  val sparkFaults: Fact[KeyedJoin] =
    CommonFacts.sparkFaults(Fact.of[KeyedJoin], "the join")(join => FaultShapes.met(join.shape))

  val isInPruningSide: Fact[KnownJoin] = ofJoin.fixed(
    "is_in_pruning_side",
    "whether the join is part of a side that prunes so: Spark plans such a side twice, and prunes only where " +
      "both plans are alike"
  )(_.state.prunes.isInSide)

  private val ofSide = Fact.of[KeyedSide]

  val tables: Fact[KeyedSide] = CommonFacts.tables(ofSide)(side => Tables.of(side.plan))

  val rowBytes: Fact[KeyedSide] = CommonFacts.rowBytes(ofSide)(side => JoinSide.rowBytes(side.plan))

  val signature: Fact[KeyedSide] = SignatureFacts.plan(ofSide)(side => Some(side.plan))

  val history: Fact[KeyedSide] = HistoryFacts.plan(ofSide)(side => Some(side.plan))

  val canShuffleHash: Fact[KeyedSide] = ofSide.fixed(
    "can_shuffle_hash",
    "whether the join's type and keys let a shuffled hash join build from this side"
  )(_.canShuffleHash)

  val prunes: Fact[KeyedSide] = ofSide(
    "prunes",
    "whether Spark's own plan broadcasts this side, and reads only those partitions of the other side's tables " +
      "for which the broadcast has rows (dynamic partition pruning)"
  )(_.prunes)
}

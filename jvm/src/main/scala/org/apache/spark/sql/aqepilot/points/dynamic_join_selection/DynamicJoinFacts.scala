package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.facts.{CommonFacts, Fact, Facts, PointFacts}
import org.apache.spark.sql.aqepilot.plans.joins.JoinFacts
import org.apache.spark.sql.catalyst.expressions.RowOrdering

/** The facts of `dynamic_join_selection`. */
private object DynamicJoinFacts {

  private val ofJoin = Fact.of[ReplannedJoin]

  private val join = new Facts[ReplannedJoin](
    JoinFacts.id,
    JoinFacts.joinType,
    JoinFacts.keyCount(),
    JoinFacts.keyTypes("SQL types of the keys, e.g. bigint"),
    ofJoin("keys_are_orderable", "whether the keys can be sorted, for a sort-merge join")(j =>
      RowOrdering.isOrderable(j.leftKeys)
    ),
    JoinFacts.hasCondition,
    JoinFacts.conditionCanThrow,
    JoinFacts.leftHint("the user's strategy hint on the left side, in Spark's word"),
    JoinFacts.rightHint("the user's strategy hint on the right side"),
    JoinFacts.sparkFaults,
    JoinFacts.isInPruningSide,
    ofJoin(
      "engine_merges",
      "whether the native engine would run it as a sort-merge join; null without an engine, and while a side runs"
    )(_.taken.flatMap(_.asMerge))
  )

  private val ofSide = Fact.of[ReplannedSide]

  /** Those of one side. */
  val side: Facts[ReplannedSide] = new Facts[ReplannedSide](
    Seq[Fact[ReplannedSide]](
      ofSide.fixed("is_left", "whether it is the join's left side")(_.isLeft),
      JoinFacts.tables,
      ofSide.fixed("is_finished", "whether its shuffle has run, with statistics")(
        _.measured.finished.isDefined
      ),
      ofSide.fixed(
        "is_plain_stage",
        "whether nothing stands between the shuffle and the join (Spark's own rule looks at these " +
          "only); null when there is no shuffle beneath"
      )(s => s.measured.stage.map(_ => s.measured.isPlain)),
      ofSide.fixed(
        "is_broadcast",
        "whether it is a broadcast stage already"
      )(_.measured.isBroadcast),
      ofSide("size_in_bytes", "rows' size, uncompressed, bytes; measured for a plain stage")(s =>
        s.measured.finished.map(_ => s.measured.sizeInBytes)
      ),
      ofSide("row_count", "rows; measured for a plain stage, null when not known")(s =>
        s.measured.finished.flatMap(_ => s.measured.rowCount)
      ),
      JoinFacts.rowBytes,
      ofSide.fixed(
        "num_partitions",
        "partitions of the shuffle"
      )(_.measured.shuffle.map(_.bytes.length)),
      ofSide("num_mappers", "map tasks that wrote the shuffle")(
        _.measured.finished.map(_.shuffle.numMappers)
      )
    ) ++ CommonFacts.sizesOfOne(ofSide)(_.measured.shuffle) ++ Seq[Fact[ReplannedSide]](
      ofSide.fixed("non_empty_ratio", "share of the partitions that are not empty, 0 to 1")(
        _.measured.shuffle.flatMap(_.nonEmptyRatio)
      ),
      ofSide.fixed("can_broadcast", "whether the join type lets this side be broadcast")(
        _.typeLetsBroadcast
      ),
      JoinFacts.canShuffleHash,
      JoinFacts.prunes,
      JoinFacts.signature,
      JoinFacts.history,
      ofSide(
        "engine_hashes",
        "whether the native engine would run it as a shuffled hash join that builds from this side; null without an " +
          "engine, and while a side runs"
      )(_.isTakenAsHash)
    ): _*
  )

  private val spark = new Facts[ReplannedSide](
    ofSide(
      "hint",
      "what Spark's own rule says to this side, given the user's hints only; null = nothing"
    )(_.sparkWord),
    ofSide(
      "conversion",
      "4.3: side (LEFT, RIGHT) that Spark would build from if it turned a sort-merge join here " +
        "into a shuffled hash join, NONE if it would not; null when not predictable and before 4.3"
    )(_.join.conversion)
  )

  val all: PointFacts[ReplannedSide] = new PointFacts(
    ofSide.group("join", "the join", join)(_.join),
    ofSide.struct("side", "the side that is asked about", side.schema)(_.facts),
    ofSide.struct("other", "the other side; null facts while its shuffle runs", side.schema)(
      _.other.facts
    ),
    ofSide.group("spark", "what Spark would do without us", spark)(s => s)
  )
}

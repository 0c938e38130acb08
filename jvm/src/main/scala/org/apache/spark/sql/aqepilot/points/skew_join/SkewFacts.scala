package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  Fact,
  Facts,
  HistoryFacts,
  PointFacts,
  SignatureFacts,
  Tables
}
import org.apache.spark.sql.aqepilot.plans.joins.{
  JoinFacts,
  JoinState,
  JoinStrategy,
  KnownJoin,
  SkewLayout,
  StageShuffle
}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** What the facts of `skew_join` are read from.
  *
  * @param shuffles
  *   how many the join's stage reads
  * @param isReadLocally
  *   whether Spark will read the only one of them where it was written
  * @param built
  *   what Spark's own rule has made of the join
  */
final private case class JoinToSplit(
    state: JoinState,
    join: BaseJoinExec,
    left: Option[StageShuffle],
    right: Option[StageShuffle],
    shuffles: Int,
    isReadLocally: Boolean,
    built: SkewLayout
) extends KnownJoin {

  override def joinType: JoinType = join.joinType

  override def leftKeys: Seq[Expression] = join.leftKeys

  override def condition: Option[Expression] = join.condition

  private val logical: Option[Join] = join.logicalLink.collect { case j: Join => j }

  def leftSide: SideToSplit = SideToSplit(left, logical.map(_.left))

  def rightSide: SideToSplit = SideToSplit(right, logical.map(_.right))
}

/** A side of it.
  *
  * @param shuffle
  *   none where another join or a broadcast is the side
  */
final private case class SideToSplit(shuffle: Option[StageShuffle], plan: Option[LogicalPlan])

/** The facts of `skew_join`. */
private object SkewFacts {

  private val ofJoin = Fact.of[JoinToSplit]

  private val join = new Facts[JoinToSplit](
    JoinFacts.id,
    JoinFacts.joinType,
    ofJoin.fixed(
      "strategy",
      "SortMergeJoin, or ShuffledHashJoin or BroadcastHashJoin with BuildLeft or BuildRight"
    )(j => JoinStrategy.of(j.join)),
    JoinFacts.keyCount(),
    JoinFacts.hasCondition,
    ofJoin.fixed(
      "shuffles",
      "shuffles that the joins of this stage read together; Spark's own rule splits where it is 2, and " +
        "from 4.2 on where a broadcast join's streamed side is the only one"
    )(_.shuffles),
    ofJoin.fixed(
      "is_read_locally",
      "whether Spark will read a broadcast join's streamed side where it was written, each task some of " +
        "one map task's output (spark.sql.adaptive.localShuffleReader.enabled): no partition is one task's"
    )(_.isReadLocally)
  )

  private val ofSide = Fact.of[SideToSplit]

  private val side = new Facts[SideToSplit](
    Seq(
      CommonFacts.tables(ofSide)(s => s.shuffle.flatMap(_ => s.plan).map(Tables.of)),
      ofSide.fixed(
        "num_partitions",
        "partitions of the shuffle"
      )(_.shuffle.map(_.sizes.bytes.length)),
      ofSide(
        "num_mappers",
        "map tasks that wrote the shuffle: a partition has no more parts than these"
      )(_.shuffle.map(_.stage.shuffle.numMappers))
    ) ++ CommonFacts.sizesOfOne(ofSide)(_.shuffle.map(_.sizes)) ++ Seq(
      ofSide.fixed("p90_bytes", "90th percentile of bytes_by_partition_id (nearest rank)")(
        _.shuffle.flatMap(_.sizes.p90)
      ),
      ofSide.fixed("p99_bytes", "99th percentile of bytes_by_partition_id (nearest rank)")(
        _.shuffle.flatMap(_.sizes.p99)
      ),
      ofSide.fixed("non_empty_ratio", "share of the partitions that are not empty, 0 to 1")(
        _.shuffle.flatMap(_.sizes.nonEmptyRatio)
      ),
      ofSide.fixed(
        "can_split",
        "whether the join types up to the stage's topmost join let this side's partitions be split"
      )(_.shuffle.map(_.canSplit)),
      SignatureFacts.plan(ofSide)(_.plan),
      HistoryFacts.shuffles(ofSide)(_.shuffle.map(_.stage.shuffle).toSeq)
    ): _*
  )

  private val ofSpark = Fact.of[SkewLayout]

  private val spark = new Facts[SkewLayout](
    ofSpark.fixed(
      "left_skewed_partitions",
      "partitions of the left side that it splits"
    )(_.left.size),
    ofSpark.fixed("right_skewed_partitions", "partitions of the right side that it splits")(
      _.right.size
    ),
    ofSpark.fixed("tasks", "tasks that read the join's shuffles, before any coalescing")(_.tasks)
  )

  val all: PointFacts[JoinToSplit] = new PointFacts(
    ofJoin.group("join", "the join", join)(j => j),
    ofJoin.group(
      "left",
      "the shuffle that is the join's left side; null facts when another join or a broadcast is",
      side
    )(_.leftSide),
    ofJoin.group(
      "right",
      "the shuffle that is the join's right side; null facts when another join or a broadcast is",
      side
    )(_.rightSide),
    ofJoin.group("spark", "what Spark's own rule has made of this join", spark)(_.built)
  )
}

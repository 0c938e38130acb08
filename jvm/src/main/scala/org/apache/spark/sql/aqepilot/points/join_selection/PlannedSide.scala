package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.MapOutputStatistics
import org.apache.spark.sql.aqepilot.decision.JoinWords.{Broadcast, BuildLeft, BuildRight}
import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.facts.{Distributed, Estimates, JoinSide, ShuffleFacts}
import org.apache.spark.sql.aqepilot.plans.joins.{JoinState, KeyedSide}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{JoinHint, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.internal.SQLConf

/** One side of a join that is being planned. */
final private class PlannedSide(override val join: JoinToPlan, override val isLeft: Boolean)
    extends KeyedSide {

  private def other: PlannedSide = if (isLeft) join.right else join.left

  /** Its expressions of the join's equality keys; none where the join has none. */
  private def keys: Seq[Expression] = if (isLeft) join.leftKeys else join.rightKeys

  private val statistics: Statistics = Estimates.of(plan)

  def sizeInBytes: BigInt = statistics.sizeInBytes

  def rowCount: Option[BigInt] = statistics.rowCount

  /** Where its size is from. */
  def estimateFrom: String = Estimates.from(plan, join.conf)

  private val finished: Option[MapOutputStatistics] =
    JoinSide.of(plan).finished.flatMap(_.mapStats)

  /** The finished shuffle beneath. */
  lazy val shuffle: Option[ShuffleFacts] = finished.map(ShuffleFacts.of)

  /** Changes whenever a fact of this side does. */
  def version: Any = (sizeInBytes, rowCount, statistics.isRuntime)

  /** What a run-time rule, Spark's or ours, has put here. */
  def runTimeHint: Option[String] = {
    def word(hint: JoinHint) = JoinState.word(if (isLeft) hint.leftHint else hint.rightHint)
    word(join.logical.hint).filterNot(word(join.state.userHint).contains)
  }

  /** Of its only key. */
  def distinctCount: Option[BigInt] = keys match {
    case Seq(key: Attribute) =>
      statistics.attributeStats.get(key).flatMap(_.distinctCount)
    case _ => None
  }

  /** Whether rows with equal keys are in one partition already; none without keys. */
  def isDistributed: Option[Boolean] = ofKeys(plan match {
    case Stage(_, physical) =>
      physical.outputPartitioning.satisfies(ClusteredDistribution(keys))
    case _ => Distributed.by(plan, keys)
  })

  /** Whether partitions are sorted by the keys already; none without keys. */
  def isSorted: Option[Boolean] = ofKeys(plan match {
    case Stage(_, physical) =>
      val sorted = physical.outputOrdering.take(keys.size).map(_.child)
      sorted.size == keys.size && keys.forall(k => sorted.exists(_.semanticEquals(k)))
    case _ => Distributed.isSorted(plan, keys)
  })

  private def ofKeys(value: => Boolean): Option[Boolean] = if (keys.isEmpty) None else Some(value)

  // What Spark's own rules say: JoinSelectionHelper.

  def canBroadcast: Boolean =
    if (join.isNullAware) !isLeft
    else if (join.leftKeys.isEmpty) !isLeft || !join.isSingle
    else join.isHashable && typeLetsBroadcast

  def broadcastsBySize: Boolean = Estimates.broadcasts(plan, join.conf)

  def hashesBySize: Boolean =
    sizeInBytes < join.conf.autoBroadcastJoinThreshold * join.conf.numShufflePartitions

  def isMuchSmaller: Boolean =
    sizeInBytes * join.conf.getConf(SQLConf.SHUFFLE_HASH_JOIN_FACTOR) <= other.sizeInBytes

  override def isBroadcastBySpark: Boolean =
    join.spark.contains(Selection(Broadcast, Some(if (isLeft) BuildLeft else BuildRight)))
}

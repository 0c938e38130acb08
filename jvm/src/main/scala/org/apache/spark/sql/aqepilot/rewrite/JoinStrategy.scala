package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.Sessions
import org.apache.spark.sql.aqepilot.facts.JoinSide
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.{
  BroadcastHashJoinExec,
  BroadcastNestedLoopJoinExec,
  CartesianProductExec,
  ShuffledHashJoinExec,
  SortMergeJoinExec
}

import io.aqepilot.decision.{JoinSelectionPoint, Selection}
import io.aqepilot.decision.DynamicJoinSelectionPoint._

/** A physical join in a word or two: `SortMergeJoin`, `ShuffledHashJoin BuildLeft`. */
object JoinStrategy {

  val SortMerge = "SortMergeJoin"
  private val BroadcastHash = "BroadcastHashJoin"
  private val ShuffledHash = "ShuffledHashJoin"

  def of(plan: SparkPlan): Option[String] = plan match {
    case _: SortMergeJoinExec           => Some(SortMerge)
    case j: ShuffledHashJoinExec        => Some(s"$ShuffledHash ${j.buildSide}")
    case j: BroadcastHashJoinExec       => Some(s"$BroadcastHash ${j.buildSide}")
    case j: BroadcastNestedLoopJoinExec => Some(s"BroadcastNestedLoopJoin ${j.buildSide}")
    case _: CartesianProductExec        => Some("CartesianProduct")
    case _                              => None
  }

  /** A physical join in the words of `join_selection`. */
  def selection(plan: SparkPlan): Option[Selection] = {
    def side(build: BuildSide) =
      Some(if (build == BuildLeft) JoinSelectionPoint.BuildLeft else JoinSelectionPoint.BuildRight)
    plan match {
      case _: SortMergeJoinExec           => Some(Selection(ShuffleMerge, None))
      case j: ShuffledHashJoinExec        => Some(Selection(ShuffleHash, side(j.buildSide)))
      case j: BroadcastHashJoinExec       => Some(Selection(Broadcast, side(j.buildSide)))
      case j: BroadcastNestedLoopJoinExec => Some(Selection(Broadcast, side(j.buildSide)))
      case _: CartesianProductExec        =>
        Some(Selection(JoinSelectionPoint.ShuffleReplicate, None))
      case _ => None
    }
  }

  /** How Spark would plan a join that has these hints, without planning its children.
    *
    * @param conversion
    *   on 4.3, what Spark would then convert a sort-merge join to: `LEFT`, `RIGHT`, `NONE`
    */
  def planned(
      session: Sessions.Classic,
      join: Join,
      left: JoinSide,
      right: JoinSide,
      conversion: Option[String]
  ): Option[String] =
    if (left.isBroadcast) Some(s"$BroadcastHash BuildLeft")
    else if (right.isBroadcast) Some(s"$BroadcastHash BuildRight")
    else
      Sessions.joinSelection(session)(join).headOption.flatMap(of).map {
        case SortMerge if conversion.contains("LEFT")  => s"$ShuffledHash BuildLeft"
        case SortMerge if conversion.contains("RIGHT") => s"$ShuffledHash BuildRight"
        case strategy                                  => strategy
      }

  /** Whether a join that runs so is what a decision on one side asked for. */
  def satisfies(strategy: String, word: String, isLeft: Boolean): Boolean = {
    val build = if (isLeft) "BuildLeft" else "BuildRight"
    word match {
      case Broadcast         => strategy == s"$BroadcastHash $build"
      case ShuffleHash       => strategy == s"$ShuffledHash $build"
      case PreferShuffleHash =>
        strategy == s"$ShuffledHash $build" || strategy.startsWith(BroadcastHash)
      case ShuffleMerge    => strategy == SortMerge
      case NoBroadcastHash => strategy != s"$BroadcastHash $build"
      case _               => false
    }
  }
}

package org.apache.spark.sql.aqepilot.plans.joins

import java.lang.reflect.{Method, Proxy}

import org.apache.spark.sql.ExperimentalMethods
import org.apache.spark.sql.aqepilot.decision.JoinWords.{BuildLeft => _, BuildRight => _, _}
import org.apache.spark.sql.aqepilot.decision.{JoinWords, Selection}
import org.apache.spark.sql.aqepilot.facts.JoinSide
import org.apache.spark.sql.aqepilot.spark.engines.StandIn
import org.apache.spark.sql.aqepilot.spark.{Sessions, SparkJoinRules}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.{HintErrorHandler, Join, JoinHint}
import org.apache.spark.sql.execution.joins.{
  BroadcastHashJoinExec,
  BroadcastNestedLoopJoinExec,
  CartesianProductExec,
  ShuffledHashJoinExec,
  SortMergeJoinExec
}
import org.apache.spark.sql.execution.{SparkPlan, SparkPlanner, SparkStrategy}
import org.apache.spark.sql.internal.SQLConf

/** A physical join in a word or two: `SortMergeJoin`, `ShuffledHashJoin BuildLeft`. What an engine runs in its place is
  * called the same.
  */
object JoinStrategy {

  val SortMerge = "SortMergeJoin"
  val BroadcastHash = "BroadcastHashJoin"
  val ShuffledHash = "ShuffledHashJoin"

  def of(plan: SparkPlan): Option[String] = plan match {
    case _: SortMergeJoinExec           => Some(SortMerge)
    case j: ShuffledHashJoinExec        => Some(s"$ShuffledHash ${j.buildSide}")
    case j: BroadcastHashJoinExec       => Some(s"$BroadcastHash ${j.buildSide}")
    case j: BroadcastNestedLoopJoinExec => Some(s"BroadcastNestedLoopJoin ${j.buildSide}")
    case _: CartesianProductExec        => Some("CartesianProduct")
    case other                          =>
      StandIn.join(other).map(j => (j.kind +: j.buildSide.map(_.toString).toSeq).mkString(" "))
  }

  /** Whether it is a join, Spark's own or one that an engine runs. */
  def isJoin(plan: SparkPlan): Boolean = of(plan).isDefined

  /** A physical join in the words of `join_selection`. */
  def selection(plan: SparkPlan): Option[Selection] = {
    def side(build: BuildSide) =
      Some(if (build == BuildLeft) JoinWords.BuildLeft else JoinWords.BuildRight)
    plan match {
      case _: SortMergeJoinExec           => Some(Selection(ShuffleMerge, None))
      case j: ShuffledHashJoinExec        => Some(Selection(ShuffleHash, side(j.buildSide)))
      case j: BroadcastHashJoinExec       => Some(Selection(Broadcast, side(j.buildSide)))
      case j: BroadcastNestedLoopJoinExec => Some(Selection(Broadcast, side(j.buildSide)))
      case _: CartesianProductExec        =>
        Some(Selection(JoinWords.ShuffleReplicate, None))
      case other => StandIn.join(other).map(j => Selection(word(j.kind), j.buildSide.flatMap(side)))
    }
  }

  private def word(kind: String): String = kind match {
    case StandIn.SortMerge    => ShuffleMerge
    case StandIn.ShuffledHash => ShuffleHash
    case StandIn.Cartesian    => JoinWords.ShuffleReplicate
    case _                    => Broadcast
  }

  /** What Spark's own rule says to a join while its query runs, when it has the user's hints only. */
  def hintBySpark(join: Join, state: JoinState): JoinHint = {
    val bare = join.copy(hint = state.userHint)
    val rule = SparkJoinRules.rule
    val excluded = SQLConf.get.getConf(SQLConf.ADAPTIVE_OPTIMIZER_EXCLUDED_RULES).exists(
      _.split(",").map(_.trim).contains(rule.ruleName)
    )
    if (excluded) bare.hint
    else
      rule(bare) match {
        case j: Join => j.hint
        case _       => bare.hint
      }
  }

  /** What Spark's own strategy makes of a join that has these hints, without planning its children.
    *
    * It says nothing of hints that it cannot follow: of the user's hints Spark's planner says it, once, when it
    * plans the join. The strategy takes its hint error handler from the settings when it is made.
    */
  def plannedBySpark(session: Sessions.Classic, join: Join): Seq[SparkPlan] =
    new SilentPlanner(session).joinSelection(join)

  private class SilentPlanner(classic: Sessions.Classic)
      extends SparkPlanner(classic, new ExperimentalMethods) {
    private var isReady = false

    /** The session's own from 4.0 on, and the thread's before. */
    override def conf: SQLConf = if (isReady) super.conf else Unheard

    val joinSelection: SparkStrategy = JoinSelection
    isReady = true
  }

  private object Unheard extends SQLConf {
    // A proxy, as the types of what is reported differ between versions.
    private val handler = Proxy
      .newProxyInstance(
        classOf[HintErrorHandler].getClassLoader,
        Array[Class[_]](classOf[HintErrorHandler]),
        (_: Any, _: Method, _: Array[AnyRef]) => null
      )
      .asInstanceOf[HintErrorHandler]

    override def hintErrorHandler: HintErrorHandler = handler
  }

  /** How Spark would plan a join that has these hints.
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
      plannedBySpark(session, join).headOption.flatMap(of).map {
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

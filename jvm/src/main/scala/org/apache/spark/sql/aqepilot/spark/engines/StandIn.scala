package org.apache.spark.sql.aqepilot.spark.engines

import scala.util.Try

import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}

/** The operators that an engine runs in the place of Spark's, told by the names of their classes: Comet's
  * `CometHashJoinExec`, Gluten's `ShuffledHashJoinExecTransformer`.
  */
private[aqepilot] object StandIn {

  /** A join that an engine runs.
    *
    * @param kind
    *   Spark's name of it, as `SortMergeJoin`
    * @param buildSide
    *   none where no side is built from
    */
  final case class Join(kind: String, buildSide: Option[BuildSide])

  val SortMerge = "SortMergeJoin"
  val BroadcastHash = "BroadcastHashJoin"
  val NestedLoop = "BroadcastNestedLoopJoin"
  val ShuffledHash = "ShuffledHashJoin"
  val Cartesian = "CartesianProduct"

  /** By a part of a class's name; the first that is in it. */
  private val kinds = Seq(
    SortMerge -> SortMerge,
    BroadcastHash -> BroadcastHash,
    NestedLoop -> NestedLoop,
    Cartesian -> Cartesian,
    "HashJoin" -> ShuffledHash
  )

  /** Whether an operator is not one of Spark's own. */
  def is(plan: SparkPlan): Boolean =
    !plan.getClass.getName.startsWith("org.apache.spark.sql.execution.")

  /** The join that an operator runs, where it stands in for one of Spark's. */
  def join(plan: SparkPlan): Option[Join] = plan match {
    case node if node.children.size == 2 && is(node) =>
      val name = node.getClass.getSimpleName
      kinds.collectFirst { case (part, kind) if name.contains(part) => kind }.map { kind =>
        Join(kind, value(node, "buildSide").collect { case side: BuildSide => side })
      }
    case _ => None
  }

  /** Whether it sorts each partition by itself. */
  def isLocalSort(plan: SparkPlan): Boolean = is(plan) && plan.children.size == 1 &&
    value(plan, "originalPlan").exists {
      case s: SortExec => !s.global
      case _           => false
    }

  /** Whether it is a shuffle that an engine runs. */
  def isShuffle(plan: SparkPlan): Boolean = plan match {
    case _: ShuffleExchangeExec => false
    case _: ShuffleExchangeLike => true
    case _                      => false
  }

  private def value(plan: SparkPlan, name: String): Option[Any] =
    Try(plan.getClass.getMethod(name).invoke(plan)).toOption
}

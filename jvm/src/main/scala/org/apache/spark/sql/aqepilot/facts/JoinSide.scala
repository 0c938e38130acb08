package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.SparkEnv
import org.apache.spark.internal.config
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  LogicalPlan,
  Project,
  Sort,
  Window
}
import org.apache.spark.sql.execution.adaptive.{
  BroadcastQueryStageExec,
  QueryStageExec,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.{ExpandExec, GenerateExec, SparkPlan, UnaryExecNode}

/** One side of a join while its query runs.
  *
  * @param stage
  *   the shuffle stage beneath, running or finished; None when there is none below the operators that
  *   neither add rows nor shuffle
  * @param isPlain
  *   whether nothing stands between the stage and the join
  */
final case class JoinSide(
    plan: LogicalPlan,
    stage: Option[ShuffleQueryStageExec],
    isPlain: Boolean
) {

  /** The stage, once it has run and has statistics. */
  val finished: Option[ShuffleQueryStageExec] =
    stage.filter(s => s.isMaterialized && s.mapStats.isDefined)

  lazy val shuffle: Option[ShuffleFacts] = finished.flatMap(_.mapStats).map(ShuffleFacts.of)

  /** Rows' size, uncompressed: measured for a plain stage, else Spark's estimate from what is measured. */
  lazy val sizeInBytes: BigInt = Estimates.of(plan).sizeInBytes

  lazy val rowCount: Option[BigInt] = Estimates.of(plan).rowCount

  def isBroadcast: Boolean = plan match {
    case Stage(_, _: BroadcastQueryStageExec) => true
    case _                                    => false
  }

  /** Changes whenever a fact of this side does. */
  def version: (Int, Boolean, Boolean) =
    (stage.fold(-1)(_.id), finished.isDefined, isBroadcast)
}

object JoinSide {

  def of(plan: LogicalPlan): JoinSide = plan match {
    case Stage(_, s: ShuffleQueryStageExec) => JoinSide(plan, Some(s), isPlain = true)
    case _                                  => JoinSide(plan, beneath(plan), isPlain = false)
  }

  /** Looks through operators that keep or reduce rows: beyond others a shuffle says nothing of the side. */
  private def beneath(plan: LogicalPlan): Option[ShuffleQueryStageExec] = plan match {
    case Stage(_, physical)                                          => beneathPhysical(physical)
    case _: Project | _: Filter | _: Aggregate | _: Sort | _: Window => beneath(plan.children.head)
    case _                                                           => None
  }

  private def beneathPhysical(plan: SparkPlan): Option[ShuffleQueryStageExec] = plan match {
    case s: ShuffleQueryStageExec                                          => Some(s)
    case _: QueryStageExec | _: Exchange | _: GenerateExec | _: ExpandExec => None
    case u: UnaryExecNode => beneathPhysical(u.child)
    case _                => None
  }

  private[aqepilot] def exactUpTo: Int =
    SparkEnv.get.conf.get(config.SHUFFLE_MIN_NUM_PARTS_TO_HIGHLY_COMPRESS)

  /** Spark's estimate of a row's size, by its columns' types. */
  def rowBytes(plan: LogicalPlan): Long = toLong(EstimationUtils.getSizePerRow(plan.output))

  def toLong(n: BigInt): Long = if (n.isValidLong) n.toLong else Long.MaxValue
}

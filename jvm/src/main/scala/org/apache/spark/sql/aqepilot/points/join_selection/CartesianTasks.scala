package org.apache.spark.sql.aqepilot.points.join_selection

import org.apache.spark.sql.aqepilot.decision.Guardrails
import org.apache.spark.sql.aqepilot.facts.Estimates
import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Distinct,
  Join,
  LogicalPlan,
  RepartitionOperation,
  Union,
  Window
}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}
import org.apache.spark.sql.internal.SQLConf

/** A Cartesian product has a task for each pair of its sides' partitions (`CartesianRDD.getPartitions`): where one
  * stands below another without a shuffle in between, all these numbers are multiplied, and the driver, which keeps
  * each task in memory, is the first to suffer.
  */
private object CartesianTasks {

  /** Why a policy may not have this join run as a Cartesian product. */
  def refusal(session: Sessions.Classic, join: Join, state: JoinState): Option[String] = {
    val conf = session.sessionState.conf
    lazy val sides = Seq(join.left, join.right).map(partitions(_, conf, session))
    val most = Guardrails.of(conf, session.sparkContext).maxPartitions
    val above = SelectionMemory.of(state).productsAbove
    if (above.nonEmpty)
      Some(
        s"join ${above.min}, above it, is a Cartesian product already: the partitions of all " +
          "sides would be multiplied"
      )
    else if (sides.map(BigInt(_)).product > most)
      Some(
        s"a Cartesian product of ${sides.mkString(" and ")} partitions has more tasks than the $most of " +
          "spark.aqepilot.guard.max_partitions"
      )
    else None
  }

  /** Tells the joins beneath, which are planned later, whether this one is a Cartesian product. */
  def note(join: Join, state: JoinState, isProduct: Boolean): Unit = {
    val memory = SelectionMemory.of(state)
    if (isProduct != memory.isProduct) {
      memory.isProduct = isProduct
      join.children.foreach(_.foreach {
        case below: Join =>
          JoinState.of(below).map(SelectionMemory.of).foreach { beneath =>
            val above = beneath.productsAbove
            beneath.productsAbove = if (isProduct) above + state.id else above - state.id
          }
        case _ =>
      })
    }
  }

  /** About how many partitions a side has when it is run: as many as it can have, where that is known. */
  private def partitions(plan: LogicalPlan, conf: SQLConf, session: Sessions.Classic): Long = {
    val shuffled = math.max(
      conf.numShufflePartitions,
      conf.getConf(SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM).getOrElse(1)
    ).toLong
    def most(plan: LogicalPlan): Long = plan match {
      case Stage(_, physical) => math.max(1, physical.outputPartitioning.numPartitions).toLong
      case union: Union       => union.children.map(most).sum
      case _: Join | _: Aggregate | _: Distinct | _: Window | _: RepartitionOperation => shuffled
      case _ if plan.children.size == 1 => most(plan.children.head)
      case _                            =>
        val files = Estimates.of(plan).sizeInBytes / math.max(1L, conf.filesMaxPartitionBytes)
        (files + 1).max(session.sparkContext.defaultParallelism).min(Int.MaxValue).toLong
    }
    most(plan)
  }
}

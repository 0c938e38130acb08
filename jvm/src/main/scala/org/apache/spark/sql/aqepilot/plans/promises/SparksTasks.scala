package org.apache.spark.sql.aqepilot.plans.promises

import java.util.IdentityHashMap

import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.BarrierPlans
import org.apache.spark.sql.catalyst.expressions.SortOrder
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  GlobalLimit,
  Join,
  LogicalPlan,
  Repartition,
  RepartitionByExpression,
  Subquery
}
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, SinglePartition}
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  AdaptiveSparkPlanExec,
  LogicalQueryStage,
  QueryStageExec,
  TableCacheQueryStageExec
}
import org.apache.spark.sql.execution.columnar.{InMemoryRelation, InMemoryTableScanExec}
import org.apache.spark.sql.execution.exchange.{
  BroadcastExchangeLike,
  ENSURE_REQUIREMENTS,
  Exchange,
  REPARTITION_BY_NUM,
  ShuffleExchangeLike
}
import org.apache.spark.sql.execution.{
  CollectLimitExec,
  ExternalRDD,
  ExternalRDDScanExec,
  LogicalRDD,
  RDDScanExec,
  SparkPlan,
  TakeOrderedAndProjectExec
}
import org.apache.spark.sql.internal.SQLConf

/** The parts of a plan about which no policy decides, because somebody counts the tasks of a stage.
  *
  *   - A stage in barrier mode: Spark refuses it where it has more tasks than there are slots, and where one of its
  *     operators has another number of partitions than the rest.
  *   - The last stage of a plan that becomes an RDD ([[RddConversion]]).
  *
  * Such a part goes down to the shuffles whose result does not depend on what is decided below: the author gave their
  * number, or they have one partition. The sizes of all other shuffles do, and with them how Spark merges and splits
  * their partitions.
  */
private[aqepilot] object SparksTasks {

  /** Why, for each node of such a part. */
  final class Parts[T <: TreeNode[T]] {
    private val reasons = new IdentityHashMap[T, Reason]

    def of(node: T): Option[Reason] = Option(reasons.get(node))
    def any: Option[Reason] = if (reasons.isEmpty) None else Some(reasons.values.iterator.next)
    private[SparksTasks] def add(node: T, why: Option[Reason]): Unit =
      why.foreach(reasons.put(node, _))
  }

  /** What a record says of a decision that is not carried out for such a reason. */
  def refusal(reason: Reason): (Reason, Some[String]) = (reason, Some(detail(reason)))

  def detail(reason: Reason): String =
    if (reason == Reason.BarrierStage)
      "a stage in barrier mode reads this; what is below a `repartition` with a number is decided"
    else
      "the partitions become an RDD's; what is below a `repartition` with a number and columns is decided"

  /** In a plan as Spark prepares it. */
  def of(at: PointRule[_], plan: SparkPlan): Parts[SparkPlan] =
    of(plan, RddConversion.leaving(at.executionId, isRunning(plan)))

  private def isRunning(plan: SparkPlan) = plan.exists(_.isInstanceOf[QueryStageExec])

  private[plans] def of(plan: SparkPlan, leaving: Option[Reason]): Parts[SparkPlan] = {
    val parts = new Parts[SparkPlan]
    def stage(root: SparkPlan, above: Option[Reason]): Unit = {
      val why = above.orElse(if (runsBarrier(root)) Some(Reason.BarrierStage) else None)
      def within(node: SparkPlan, isAlone: Boolean): Unit = {
        parts.add(node, why)
        node match {
          case e: Exchange               => stage(e.child, why.filterNot(ends(e, isAlone, _)))
          case _: QueryStageExec         =>
          case n if isSingle(n)          => stage(n.children.head, None)
          case n if n.children.size == 1 => within(n.children.head, isAlone)
          case n                         => n.children.foreach(within(_, isAlone = false))
        }
      }
      within(root, isAlone = true)
    }
    if (leaving.nonEmpty || plan.exists(isBarrier)) stage(plan, leaving)
    parts
  }

  /** Whether an operator shuffles all rows to one task by itself. */
  private def isSingle(node: SparkPlan) = node match {
    case _: CollectLimitExec | _: TakeOrderedAndProjectExec => true
    case _                                                  => false
  }

  /** Whether tasks above an exchange are the same whatever is decided below.
    *
    * @param isAlone
    *   whether its stage reads nothing else, so that Spark neither splits it nor reads it where it was written
    */
  private def ends(exchange: Exchange, isAlone: Boolean, why: Reason): Boolean = exchange match {
    case _: BroadcastExchangeLike => true
    case s: ShuffleExchangeLike   => (s.outputPartitioning, s.shuffleOrigin) match {
        case (SinglePartition, _)                       => true
        case (h: HashPartitioning, REPARTITION_BY_NUM)  => isUsersOwn(h.numPartitions)
        case (_, REPARTITION_BY_NUM)                    => why == Reason.BarrierStage
        case (_: HashPartitioning, ENSURE_REQUIREMENTS) =>
          isAlone && !SQLConf.get.coalesceShufflePartitionsEnabled
        case _ => false
      }
    case _ => false
  }

  /** Spark leaves a shuffle out whose number and columns are those of a join or an aggregate below. */
  private def isUsersOwn(number: Int) = number != SQLConf.get.numShufflePartitions

  /** Whether the stage of which this is the top runs in barrier mode. */
  private def runsBarrier(root: SparkPlan): Boolean = isBarrier(root) || (root match {
    case _: Exchange | _: QueryStageExec => false
    case node                            => node.children.exists(runsBarrier)
  })

  private def isBarrier(node: SparkPlan): Boolean = node match {
    case scan: RDDScanExec                => scan.rdd.isBarrier()
    case scan: ExternalRDDScanExec[_]     => scan.rdd.isBarrier()
    case scan: InMemoryTableScanExec      => isBarrier(scan.relation)
    case cached: TableCacheQueryStageExec => isBarrier(cached.plan)
    case other                            => BarrierPlans.is(other)
  }

  private def isBarrier(node: LogicalPlan): Boolean = node match {
    case rdd: LogicalRDD          => rdd.rdd.isBarrier()
    case rdd: ExternalRDD[_]      => rdd.rdd.isBarrier()
    case cached: InMemoryRelation => cached.cacheBuilder.cachedPlan match {
        case adaptive: AdaptiveSparkPlanExec => runsBarrier(adaptive.executedPlan)
        case plan                            => runsBarrier(plan)
      }
    case other => BarrierPlans.is(other)
  }

  def hasBarrier(plan: LogicalPlan): Boolean = plan.exists(isBarrier(_))

  /** In a plan that is being optimised or planned. What the planner broadcasts is not known here. */
  def of(at: PointRule[_], plan: LogicalPlan): Parts[LogicalPlan] =
    of(plan, leaving(at.executionId, plan))

  private def leaving(executionId: Option[Long], plan: LogicalPlan) = plan match {
    case _: Subquery => None
    case _           =>
      RddConversion.leaving(executionId, plan.exists(_.isInstanceOf[LogicalQueryStage]))
  }

  private[plans] def of(plan: LogicalPlan, leaving: Option[Reason]): Parts[LogicalPlan] = {
    val parts = new Parts[LogicalPlan]
    def visit(node: LogicalPlan, above: Option[Reason]): Unit = {
      val why = above.orElse(if (isBarrier(node)) Some(Reason.BarrierStage) else None)
      parts.add(node, why)
      node.children.foreach(visit(_, why.filterNot(ends(node, _))))
    }
    if (leaving.nonEmpty || hasBarrier(plan)) visit(plan, leaving)
    parts
  }

  private def ends(node: LogicalPlan, why: Reason): Boolean = node match {
    case Repartition(number, true, _) => number == 1 || why == Reason.BarrierStage
    case by: RepartitionByExpression  =>
      val isHash = by.partitionExpressions.nonEmpty &&
        !by.partitionExpressions.exists(_.isInstanceOf[SortOrder])
      by.optNumPartitions.exists { number =>
        number == 1 || (if (isHash) isUsersOwn(number) else why == Reason.BarrierStage)
      }
    case a: Aggregate   => a.groupingExpressions.isEmpty
    case _: GlobalLimit => true
    case _              => false
  }

  /** Notes for each join of a plan whether it is in such a part. */
  def note(executionId: Option[Long], plan: LogicalPlan): Unit = {
    val parts = of(plan, leaving(executionId, plan))
    val isThere = hasBarrier(plan)
    plan.foreach {
      case j: Join => JoinState.of(j).foreach { state =>
          state.keeps = parts.of(j)
          state.isAboveBarrier = isThere && hasBarrier(j)
        }
      case _ =>
    }
  }

  /** On the top of each stage in such a part: the reason's code. Plans travel to executors. */
  private val tag = TreeNodeTag[String]("aqepilot.sparks_tasks")

  /** Marks the stages of a prepared plan, for the rules that see one of them alone. */
  def mark(executionId: Option[Long], plan: SparkPlan): Unit = {
    val parts = of(plan, RddConversion.leaving(executionId, isRunning(plan)))
    if (parts.any.nonEmpty) plan.foreach {
      case e: Exchange => parts.of(e.child) match {
          case Some(why) => e.child.setTagValue(tag, why.code)
          case None      => e.child.unsetTagValue(tag)
        }
      case _ =>
    }
  }

  /** Why a stage that is about to run keeps its tasks, if so. */
  def ofStage(executionId: Option[Long], stage: SparkPlan): Option[Reason] =
    if (runsBarrier(stage)) Some(Reason.BarrierStage)
    else marked(stage).orElse {
      if (FinalStage.is(stage)) RddConversion.leaving(executionId, isRunning = true) else None
    }

  private def marked(stage: SparkPlan): Option[Reason] = {
    val code = stage match {
      case AQEShuffleReadExec(shuffle, _) => shuffle.getTagValue(tag)
      case other                          => other.getTagValue(tag)
    }
    code.flatMap(c => Reason.all.find(_.code == c))
  }
}

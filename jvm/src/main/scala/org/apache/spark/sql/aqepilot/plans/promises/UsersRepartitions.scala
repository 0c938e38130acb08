package org.apache.spark.sql.aqepilot.plans.promises

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.plans.joins.JoinState
import org.apache.spark.sql.catalyst.plans.logical.Sort
import org.apache.spark.sql.catalyst.plans.physical.{
  ClusteredDistribution,
  HashPartitioning,
  Partitioning,
  PartitioningCollection
}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.execution.exchange.{
  Exchange,
  REPARTITION_BY_COL,
  REPARTITION_BY_NUM,
  ShuffleExchangeExec,
  ShuffleOrigin
}
import org.apache.spark.sql.execution.{
  CollectMetricsExec,
  DeserializeToObjectExec,
  FilterExec,
  ProjectExec,
  SortExec,
  SparkPlan,
  UnaryExecNode
}

/** A place where the query's author repartitions by columns and Spark left the shuffle out, because the rows were
  * distributed so already.
  *
  * @param node
  *   the operator that the shuffle would read
  */
final private class LeftOut(
    val node: SparkPlan,
    val id: Long,
    partitioning: HashPartitioning,
    origin: ShuffleOrigin
) {

  /** Whether equal keys are in one partition. */
  def isClustered: Boolean = satisfies(None)

  /** Whether there are also as many partitions as the author asked for; true where the author gave no number. */
  def isNumbered: Boolean =
    satisfies(if (origin == REPARTITION_BY_NUM) Some(partitioning.numPartitions) else None)

  def isKeptFrom(before: LeftOut): Boolean =
    (isClustered || !before.isClustered) && (isNumbered || !before.isNumbered)

  /** The author's shuffle over a plan. */
  def over(plan: SparkPlan): SparkPlan = {
    val shuffle = ShuffleExchangeExec(partitioning, plan, origin)
    shuffle.setTagValue(UsersRepartitions.tag, (id, partitioning, origin))
    shuffle
  }

  private def satisfies(number: Option[Int]): Boolean = UsersRepartitions.partitioning(node).exists(
    _.satisfies(ClusteredDistribution(partitioning.expressions, requiredNumPartitions = number))
  )
}

/** The repartitions by columns that a query's author wrote (`repartition(20, "k")`).
  *
  * `EnsureRequirements` leaves one out above a join or an aggregate that is partitioned by the same columns into
  * as many partitions. AQE then sees to it that the query's result is distributed so, but not what an operator
  * within the query reads (`mapInPandas`, `spark_partition_id()`): what is split or read locally below that has
  * equal keys in several partitions. That is so in plain Spark too; no decision may bring it about.
  */
private[aqepilot] object UsersRepartitions {

  /** On the author's shuffle and on what it reads: a number of its own, and what the author wants. Of Spark's own
    * classes only, because plans travel to executors.
    */
  val tag: TreeNodeTag[(Long, HashPartitioning, ShuffleOrigin)] =
    TreeNodeTag[(Long, HashPartitioning, ShuffleOrigin)]("aqepilot.repartition")

  private val ids = new AtomicLong()

  /** Marks them in a plan as the planner made it. Changes nothing else. */
  def mark(plan: SparkPlan): Unit = users(plan).foreach { case (e, partitioning) =>
    val mark = (ids.incrementAndGet(), partitioning, e.shuffleOrigin)
    e.setTagValue(tag, mark)
    // `RemoveRedundantProjects` may take the projections away that the mark is on.
    def below(plan: SparkPlan): Unit = {
      plan.setTagValue(tag, mark)
      plan match {
        case p: ProjectExec => below(p.child)
        case _              =>
      }
    }
    below(e.child)
  }

  /** The author's shuffles that stand in a plan. */
  def users(plan: SparkPlan): Seq[(ShuffleExchangeExec, HashPartitioning)] = plan.collect {
    case e: ShuffleExchangeExec if isUsers(e.shuffleOrigin) => (e, e.outputPartitioning)
  }.collect { case (e, h: HashPartitioning) => (e, h) }

  /** Whether a shuffle is there because Spark has put it on top, to restore what the author wants of the result. */
  def isRestored(e: ShuffleExchangeExec): Boolean =
    isPutBack(e) && e.getTagValue(tag).isEmpty

  /** Whether a shuffle is there because somebody, Spark or we, has put it back for what the author wants. */
  def isPutBack(e: ShuffleExchangeExec): Boolean = isUsers(e.shuffleOrigin) && e.logicalLink.isEmpty

  /** What a plan must not break that another plan keeps. */
  def areKept(before: SparkPlan, after: SparkPlan): Boolean = broken(before, after).isEmpty

  /** The same of a stage's plan. */
  def areKeptInStage(before: SparkPlan, after: SparkPlan): Boolean =
    broken(before, after, isShuffled(before)).isEmpty

  /** The plan with the author's shuffles where they stood, as far as it breaks what they are for. */
  def restored(before: SparkPlan, plan: SparkPlan): SparkPlan = {
    val gone = broken(before, plan)
    def over(plan: SparkPlan): SparkPlan = {
      val same = plan.mapChildren(over)
      gone.find(_.node eq plan).fold(same)(_.over(same))
    }
    if (gone.isEmpty) plan else over(plan)
  }

  /** The author's shuffles that Spark would leave out at the next re-plan of a changed plan, though not of the one
    * before, and whose distribution AQE would not see to: those within the query.
    */
  def needless(before: SparkPlan, after: SparkPlan): Seq[ShuffleExchangeExec] = {
    lazy val was = within(before).filter(isNeedless).flatMap(_._1.getTagValue(tag)).map(_._1)
    within(after).filter(isNeedless).map(_._1)
      .filterNot(_.getTagValue(tag).exists(mark => was.contains(mark._1)))
  }

  private def within(plan: SparkPlan): Seq[(ShuffleExchangeExec, HashPartitioning)] = {
    @scala.annotation.tailrec
    def top(plan: SparkPlan): SparkPlan = plan match {
      case _: ProjectExec | _: FilterExec | _: CollectMetricsExec | _: DeserializeToObjectExec =>
        top(plan.children.head)
      case s: SortExec if !s.global => top(s.child)
      case other                    => other
    }
    lazy val ofResult = top(plan)
    RequiredDistribution.current match {
      case None                           => Nil
      case Some(_: ClusteredDistribution) => users(plan).filterNot(_._1 eq ofResult)
      case Some(_)                        => users(plan)
    }
  }

  /** As `EnsureRequirements` has it. */
  private def isNeedless(shuffle: (ShuffleExchangeExec, HashPartitioning)): Boolean = {
    def isSame(other: Partitioning): Boolean = other match {
      case h: HashPartitioning       => shuffle._2.semanticEquals(h)
      case c: PartitioningCollection => c.partitionings.exists {
          case p: Partitioning => isSame(p)
          case _               => false
        }
      case _ => false
    }
    partitioning(shuffle._1.child).exists(isSame)
  }

  /** None for a join of which one side was split, until `EnsureRequirements` has put a shuffle below it: Spark's
    * `PartitioningCollection` refuses sides of different numbers of partitions.
    */
  def partitioning(plan: SparkPlan): Option[Partitioning] =
    try Some(plan.outputPartitioning)
    catch { case _: IllegalArgumentException => None }

  /** A stage's plan with shuffles read in whole where Spark reads them locally, below a repartition that it left out,
    * and for the sake of a join that a policy decided on: a broadcast join, which Spark alone would not have here.
    */
  def together(plan: SparkPlan): SparkPlan = {
    val torn = leftOut(plan, isShuffled(plan)).filterNot(_.isClustered).map(_.node)
      .filter(_.exists(JoinState.of(_).exists(_.isDecided)))
    def whole(plan: SparkPlan): SparkPlan = plan match {
      case r: AQEShuffleReadExec if r.isLocalRead => r.child
      case other                                  => other.mapChildren(whole)
    }
    def over(plan: SparkPlan): SparkPlan =
      if (torn.exists(_ eq plan)) whole(plan) else plan.mapChildren(over)
    if (torn.isEmpty) plan else over(plan)
  }

  /** Whether an exchange reads what this plan of a stage puts out: the author's, which then is not left out, or
    * another, to which it is all the same how the rows come.
    */
  private def isShuffled(stage: SparkPlan) = !FinalStage.is(stage)

  private def broken(
      before: SparkPlan,
      after: SparkPlan,
      isShuffled: Boolean = false
  ): Seq[LeftOut] = {
    val was = leftOut(before, isShuffled).map(l => l.id -> l).toMap
    leftOut(after, isShuffled).filterNot(now => was.get(now.id).forall(now.isKeptFrom))
  }

  private def leftOut(plan: SparkPlan, isShuffled: Boolean): Seq[LeftOut] = {
    val seen = scala.collection.mutable.Set.empty[Long]
    if (isShuffled) plan.getTagValue(tag).foreach { case (id, _, _) => seen += id }
    plan.flatMap { node =>
      node.getTagValue(tag) match {
        case Some((id, partitioning, origin)) if seen.add(id) =>
          node match {
            case e: ShuffleExchangeExec if isUsers(e.shuffleOrigin) => Nil
            case _ => Seq(new LeftOut(node, id, partitioning, origin))
          }
        case _ => Nil
      }
    }
  }

  private def isUsers(origin: ShuffleOrigin): Boolean =
    origin == REPARTITION_BY_COL || origin == REPARTITION_BY_NUM

  /** Whether a shuffle over this plan would undo an order that the author asked for: `sortWithinPartitions`. */
  def isSorted(plan: SparkPlan): Boolean = plan match {
    case s: SortExec if !s.global =>
      s.logicalLink.exists {
        case sort: Sort => !sort.global
        case _          => false
      } || isSorted(s.child)
    case _: SortExec | _: Exchange => false
    case u: UnaryExecNode          => isSorted(u.child)
    case _                         => false
  }
}

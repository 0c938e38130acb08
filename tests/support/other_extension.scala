package platform

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions, SparkSessionExtensionsProvider}
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  LogicalQueryStage,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.internal.SQLConf

/** An extension with a rule of each kind that can be injected.
  *
  * Rules of expressions hand a number on: each turns its own into the next one, so that the last one says that all
  * have acted, each once and in Spark's order. Others do what `platform.does` names, each something that aqepilot
  * decides on, too.
  */
class Extension extends SparkSessionExtensionsProvider {
  override def apply(e: SparkSessionExtensions): Unit = {
    if (!injectNew(e, "injectHintResolutionRule", Hint)) e.injectResolutionRule(_ => Hint)
    injectNew(e, "injectPreOperatorOptimizationRule", new Step(7100, "pre-operator optimization"))
    e.injectResolutionRule(_ => new Step(7000, "resolution"))
    e.injectPostHocResolutionRule(_ => new Step(7001, "post-hoc resolution"))
    e.injectCheckRule(_ => plan => if (Number.isIn(plan, 7002)) Did.once("check"))
    e.injectPlanNormalizationRule(_ => new Step(7002, "plan normalization"))
    e.injectOptimizerRule(_ => new Step(7003, "optimizer"))
    e.injectPreCBORule(_ => new Step(7004, "pre-CBO"))
    e.injectPlannerStrategy(_ => LocalSorts)
    e.injectPlannerStrategy(_ => PlansJoins)
    e.injectQueryPostPlannerStrategyRule(_ => new PhysicalStep(7005))
    e.injectRuntimeOptimizerRule(_ => HashHint)
    e.injectQueryStagePrepRule(_ => new PhysicalStep(7006))
    e.injectQueryStagePrepRule(_ => Nested)
    e.injectQueryStagePrepRule(_ => Splits)
    e.injectQueryStagePrepRule(_ => Numbers)
    e.injectQueryStagePrepRule(_ => HashJoins)
    e.injectQueryStageOptimizerRule(_ => new PhysicalStep(7007))
    e.injectQueryStageOptimizerRule(_ => Reads)
    e.injectColumnar(_ => Columnar)
    e.injectParser((_, parser) => { Did.once("parser made"); parser })
  }

  /** By a method that 3.5 does not have. */
  private def injectNew(
      e: SparkSessionExtensions,
      method: String,
      rule: Rule[LogicalPlan]
  ): Boolean = {
    val builder: SparkSession => Rule[LogicalPlan] = _ => rule
    val hook = classOf[SparkSessionExtensions].getMethods.find(_.getName == method)
    hook.foreach(_.invoke(e, builder))
    hook.isDefined
  }
}

/** What the rules did, counted. */
object Did {
  private val counts = new ConcurrentHashMap[String, AtomicLong]()
  def once(what: String): Unit =
    counts.computeIfAbsent(what, _ => new AtomicLong()).incrementAndGet()
  def take(what: String): Long = Option(counts.remove(what)).fold(0L)(_.get)
  def asked(what: String): Boolean =
    SQLConf.get.getConfString("platform.does", "").split(",").contains(what)
}

object Number {
  def is(value: Expression, number: Int): Boolean = value match {
    case Literal(n: Int, _)  => n == number
    case Literal(n: Long, _) => n == number
    case _                   => false
  }
  def isIn(plan: LogicalPlan, number: Int): Boolean =
    plan.exists(_.expressions.exists(_.exists(is(_, number))))
  def next(number: Int): PartialFunction[Expression, Expression] = {
    case l @ Literal(n: Int, _) if n == number  => l.copy(value = number + 1)
    case l @ Literal(n: Long, _) if n == number => l.copy(value = number + 1L)
  }
}

class Step(number: Int, kind: String) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!Number.isIn(plan, number)) plan
    else {
      Did.once(kind)
      if (number < 7002) plan.resolveExpressions(Number.next(number))
      else plan.transformAllExpressions(Number.next(number))
    }
}

class PhysicalStep(number: Int) extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    plan.transform { case p: FilterExec => p.transformExpressions(Number.next(number)) }
}

object Columnar extends ColumnarRule {
  override def preColumnarTransitions: Rule[SparkPlan] = new PhysicalStep(7008)
  override def postColumnarTransitions: Rule[SparkPlan] = new PhysicalStep(7009)
}

object Hint extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case UnresolvedHint("PLATFORM", _, child) =>
      Did.once("hint")
      child
  }
}

/** Plans a local sort with a mark on it. */
case class LocalSort(child: SparkPlan) extends UnaryExecNode {
  override def output = child.output
  override def outputPartitioning = child.outputPartitioning
  override def outputOrdering = child.outputOrdering
  override protected def doExecute() = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): LocalSort = copy(newChild)
}

object LocalSorts extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case s: Sort if !s.global =>
      Seq(LocalSort(SortExec(s.order, global = false, planLater(s.child))))
    case _ => Nil
  }
}

/** `hint`: a shuffled hash join, whatever was said before. */
object HashHint extends Rule[LogicalPlan] {
  private val hint = JoinHint(None, Some(HintInfo(strategy = Some(SHUFFLE_HASH))))
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!Did.asked("hint")) plan
    else plan.transform { case j: Join if j.hint != hint => j.copy(hint = hint) }
}

/** `plans`: a shuffled hash join that builds from the left.
  *
  * Only the first planning is counted: how often Spark plans again depends on whether two stages end together.
  */
object PlansJoins extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ExtractEquiJoinKeys(t, leftKeys, rightKeys, condition, _, l, r, _)
        if Did.asked("plans") =>
      if (!plan.exists(_.isInstanceOf[LogicalQueryStage])) Did.once("join")
      Seq(
        ShuffledHashJoinExec(leftKeys, rightKeys, t, BuildLeft, condition, planLater(l), planLater(r))
      )
    case _ => Nil
  }
}

/** `nested`: runs another query, which its author repartitions, while one is planned. */
object Nested extends Rule[SparkPlan] {
  private val runs = new ThreadLocal[Boolean]
  override def apply(plan: SparkPlan): SparkPlan = {
    if (Did.asked("nested") && !runs.get()) {
      runs.set(true)
      try {
        val other = SparkSession.active.range(9)
        other.repartition(3, other.col("id")).collect()
      } finally runs.remove()
    }
    plan
  }
}

/** `whole`: takes back Spark's splits. `split`: the first partition of the left side in two, by map tasks. */
object Splits extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (Did.asked("whole"))
      plan.transform {
        case j: SortMergeJoinExec if j.isSkewJoin =>
          j.copy(left = whole(j.left), right = whole(j.right), isSkewJoin = false)
      }
    else if (Did.asked("split"))
      plan.transform {
        case j @ SortMergeJoinExec(_, _, _, _, l: SortExec, r: SortExec, false) =>
          (l.child, r.child) match {
            case (a: ShuffleQueryStageExec, b: ShuffleQueryStageExec)
                if a.isMaterialized && b.isMaterialized && a.shuffle.numMappers > 1 =>
              val n = a.shuffle.numPartitions
              val mappers = a.shuffle.numMappers
              val rest = (1 until n).map(i => CoalescedPartitionSpec(i, i + 1, 0L))
              val left = Seq(
                PartialReducerPartitionSpec(0, 0, 1, 0L),
                PartialReducerPartitionSpec(0, 1, mappers, 0L)
              ) ++ rest
              val first = CoalescedPartitionSpec(0, 1, 0L)
              j.copy(
                left = l.copy(child = AQEShuffleReadExec(a, left)),
                right = r.copy(child = AQEShuffleReadExec(b, Seq(first, first) ++ rest)),
                isSkewJoin = true
              )
            case _ => j
          }
      }
    else plan

  private def whole(plan: SparkPlan): SparkPlan = plan.transform {
    case r: AQEShuffleReadExec => r.child
  }
}

/** `numbers`: 7 partitions for what is not started. */
object Numbers extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Did.asked("numbers")) plan
    else
      plan.transform {
        case e: ShuffleExchangeExec if e.shuffleOrigin == ENSURE_REQUIREMENTS =>
          e.outputPartitioning match {
            case h: HashPartitioning => e.copy(outputPartitioning = h.copy(numPartitions = 7))
            case _                   => e
          }
      }
}

/** `hash`: shuffled hash joins for sort-merge joins. */
object HashJoins extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Did.asked("hash")) plan
    else
      plan.transform {
        case j @ SortMergeJoinExec(_, _, _, _, l: SortExec, r: SortExec, false) =>
          ShuffledHashJoinExec(
            j.leftKeys,
            j.rightKeys,
            j.joinType,
            BuildRight,
            j.condition,
            l.child,
            r.child
          )
      }
}

/** `reads`: takes Spark's coalescing to a single task back. */
object Reads extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Did.asked("reads")) plan
    else
      plan.transform { case r: AQEShuffleReadExec if r.partitionSpecs.length == 1 => r.child }
}

package org.apache.spark.sql.aqepilot.plans.joins

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong
import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.aqepilot.decision.Selection
import org.apache.spark.sql.aqepilot.facts.{Beneath, BeneathJoin}
import org.apache.spark.sql.aqepilot.plans.promises.ReadTwice
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{
  HintInfo,
  Join,
  JoinHint,
  JoinStrategyHint,
  LogicalPlan
}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan

/** What is remembered of a join from its first planning to the end of its query.
  *
  * AQE forgets what a run-time rule marked on a plan unless the re-plan is adopted and differs; a tag that was
  * set before AQE survives. It holds a mere array of Spark's and Java's own making, because plans travel to
  * executors, which do not have our jar; the state is found by that array's identity and goes with the plan.
  *
  * @param userHint
  *   the join's hint before any adaptive rule saw it
  * @param isReadTwice
  *   whether the join stands in a part that has to be planned alike for each of its readers ([[ReadTwice]]): no
  *   policy decides on it
  * @param prunes
  *   what hangs on the broadcast of its sides
  */
final class JoinState(
    val id: Long,
    val userHint: JoinHint,
    val isReadTwice: Boolean,
    private[aqepilot] val prunes: Prunes
) {
  val left = new SideState
  val right = new SideState

  /** Whether a policy wants this join's skewed partitions split even at the price of more shuffles: then
    * [[PolicyCostEvaluator]] compares plans by their number of such skew joins first, as Spark does for all joins
    * with `spark.sql.adaptive.forceOptimizeSkewedJoin`.
    */
  @volatile private var forced = false

  def isForced: Boolean = forced

  def force(): Unit = {
    forced = true
    JoinState.forced.add(this)
  }

  /** Whether a policy's word was ever put into the plan on a side of the join. */
  def isOverridden: Boolean = left.overridden || right.overridden

  /** Notes that a policy's word is put into the plan on a side of the join. */
  def overrideSide(side: SideState): Unit = {
    side.overridden = true
    JoinState.overridden.add(this)
  }

  /** Why the latest planning leaves the join to Spark, if so ([[SparksTasks]]). */
  @volatile var keeps: Option[Reason] = None

  /** Whether something beneath runs in barrier mode, maybe in the join's own stage. */
  @volatile var isAboveBarrier: Boolean = false

  private val ofPoints = new ConcurrentHashMap[JoinState.OfPoint[_], Any]()

  /** What a point remembers of this join. */
  def of[A](point: JoinState.OfPoint[A]): A =
    ofPoints.computeIfAbsent(point, _ => point.begin()).asInstanceOf[A]

  val skew = new SkewState
  val tables = new TableState

  /** The policy's choice that the latest planning, adopted or not, went by; None where Spark chose. */
  @volatile var selected: Option[Selection] = None

  /** Whether a policy has chosen the join's strategy in the latest re-plan. */
  def isDecided: Boolean = left.isDecided || right.isDecided || selected.isDefined
}

/** How a join is split. */
final class SkewState {

  /** How Spark's own rule split the join in the latest re-plan. */
  @volatile var built: Option[SkewLayout] = None

  /** How the latest re-plan, adopted or not, splits it. */
  @volatile var planned: Option[SkewLayout] = None
}

object JoinState {

  /** What one point remembers of each join. */
  final class OfPoint[A](private[JoinState] val begin: () => A)

  private val tag = TreeNodeTag[Array[Long]]("aqepilot.join")
  private val states =
    Collections.synchronizedMap(new WeakHashMap[Array[Long], JoinState]())
  private val ids = new AtomicLong()

  // They go with the joins' plans: a later query does not pay for the decisions of this one.
  private val overridden = weakSet()
  private val forced = weakSet()

  private def weakSet() =
    Collections.synchronizedSet(
      Collections.newSetFromMap(new WeakHashMap[JoinState, java.lang.Boolean]())
    )

  /** Whether a policy's word was ever put into this plan: else there is nothing to restore. */
  def isOverridden(plan: LogicalPlan): Boolean = !overridden.isEmpty && plan.exists {
    case j: Join => of(j).exists(_.isOverridden)
    case _       => false
  }

  /** Whether a join of a plan that is still there was forced: else no plan is searched for such joins. */
  private[aqepilot] def anyForced: Boolean = !forced.isEmpty

  /** Gives a join its identity and keeps the hint that it has now. */
  private[aqepilot] def start(join: Join, prunes: Prunes): Unit = {
    val state = new JoinState(ids.incrementAndGet(), join.hint, ReadTwice.isIn(join), prunes)
    val key = Array(state.id)
    states.put(key, state)
    join.setTagValue(tag, key)
    BeneathJoin.start(join)
  }

  /** Whether stages run beneath a join that is being planned. */
  def isReplan(join: Join): Boolean = Beneath.hasStage(join)

  def of(join: LogicalPlan): Option[JoinState] =
    join.getTagValue(tag).flatMap(key => Option(states.get(key)))

  /** The state of the join that a physical node was planned from. */
  def of(plan: SparkPlan): Option[JoinState] = plan.logicalLink.flatMap {
    case j: Join => of(j)
    case _       => None
  }

  /** Writes down that nobody is asked about a join that has no state. */
  def recordUntracked(at: PointRule[_], joinType: JoinType, tables: => Option[String]): Unit =
    at.undecided(
      Reason.UntrackedJoin,
      s"a ${JoinFacts.name(joinType)} join made by a re-plan",
      tables
    )

  /** Spark's word for a hint, e.g. `SHUFFLE_HASH`. */
  def word(hint: JoinStrategyHint): String = hint.getClass.getSimpleName.stripSuffix("$")

  def word(hint: Option[HintInfo]): Option[String] = hint.flatMap(_.strategy).map(word)

  def hasStrategy(hint: JoinHint): Boolean =
    hint.leftHint.exists(_.strategy.isDefined) || hint.rightHint.exists(_.strategy.isDefined)
}

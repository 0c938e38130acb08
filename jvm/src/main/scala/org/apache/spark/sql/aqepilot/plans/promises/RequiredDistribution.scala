package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.decision.DecisionPoints
import org.apache.spark.sql.aqepilot.run.PoliciesInForce
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.plans.physical.Distribution
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AQEUtils
import org.apache.spark.sql.execution.exchange.{EnsureRequirements, ValidateRequirements}

/** Keeps how the user wants the query's output distributed (`join.repartition(20, "k")`), for the rules that
  * follow in the same thread: AQE knows it, but does not tell injected rules, and a plan that is rewritten
  * without it can lose the user's number of partitions.
  *
  * Hook: after the planner's strategies, at the first planning and at every re-plan, right before stage
  * preparation. Changes no plan; with policies that may need them it marks the author's repartitions.
  *
  * Source: `AdaptiveSparkPlanExec.requiredDistribution`.
  */
object RequiredDistribution extends Rule[SparkPlan] {

  /** Those whose rewrites may change how the rows are distributed. */
  private lazy val points = DecisionPoints.all.filter(_.movesRows)

  /** Of the plans that this thread prepares, the innermost first: a rule of another extension may run a query of
    * its own meanwhile.
    */
  private val ofThread = new ThreadLocal[List[Option[Distribution]]] {
    override def initialValue(): List[Option[Distribution]] = Nil
  }

  /** How many plans are remembered: no call of `done` follows a planning that fails. */
  private val MaxNested = 16

  override def apply(plan: SparkPlan): SparkPlan = {
    val required = FailOpen("required distribution", Option.empty[Distribution])(
      AQEUtils.getRequiredDistribution(plan)
    )
    ofThread.set(required :: ofThread.get().take(MaxNested - 1))
    FailOpen("users' repartitions", ())(if (isWanted) UsersRepartitions.mark(plan))
    plan
  }

  /** Whether a policy may change how rows are distributed. */
  def isWanted: Boolean = {
    val set = PoliciesInForce.of(conf)
    points.exists(set.isAsked(_))
  }

  /** Of the plan that this thread prepares. None = the user's repartition is gone from the plan's top in a way
    * that Spark does not honour either.
    */
  def current: Option[Distribution] = ofThread.get().headOption.flatten

  /** The plan is prepared: what it needs is forgotten. */
  def done(): Unit = ofThread.get() match {
    case _ :: (outer @ _ :: _) => ofThread.set(outer)
    case _                     => ofThread.remove()
  }

  /** Whether a prepared plan is distributed as its operators and the query's author need it.
    *
    * @param before
    *   what came in: whatever the author wanted and Spark does not keep there may be missing from `plan` too
    */
  def isKept(before: SparkPlan, plan: SparkPlan): Boolean =
    current.fold(ValidateRequirements.validate(plan))(ValidateRequirements.validate(plan, _)) &&
      UsersRepartitions.areKept(before, plan)

  /** Spark's rule that adds the shuffles and sorts that operators need, the user's distribution included: for plans
    * that are compared and dropped. What it has been through it may change, see [[PathAbove]].
    */
  def ensureRequirements: EnsureRequirements = EnsureRequirements(current.isDefined, current)
}

package org.apache.spark.sql.aqepilot.points.skew_join

import scala.annotation.tailrec

import org.apache.spark.sql.aqepilot.plans.joins.JoinStage
import org.apache.spark.sql.aqepilot.plans.promises.{
  PathAbove,
  RequiredDistribution,
  UsersRepartitions
}
import org.apache.spark.sql.aqepilot.spark.SparkCosts
import org.apache.spark.sql.execution.adaptive.OptimizeSkewedJoin
import org.apache.spark.sql.execution.exchange.{
  ENSURE_REQUIREMENTS,
  ShuffleExchangeExec,
  ShuffleExchangeLike
}
import org.apache.spark.sql.execution.{RemoveRedundantSorts, SparkPlan}
import org.apache.spark.sql.internal.SQLConf

/** Takes back what Spark's own rule for skewed joins did: the splits, and the shuffles that it took for them. */
private object SparksSplits {

  /** The plan with a stage's shuffles read in whole.
    *
    * @param bare
    *   what stands in the stage's place
    */
  def undone(plan: SparkPlan, stage: JoinStage, bare: SparkPlan): SparkPlan = {
    val less = PathAbove.replaced(plan, stage.root, bare)
    // Without this setting the rule takes no shuffle: what is needless otherwise is somebody else's.
    if (SQLConf.get.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN))
      withoutNeedless(plan, less, bare)
    else less
  }

  @tailrec
  private def withoutNeedless(before: SparkPlan, plan: SparkPlan, bare: SparkPlan): SparkPlan =
    plan
      .collect {
        case e: ShuffleExchangeExec
            if e.shuffleOrigin == ENSURE_REQUIREMENTS || UsersRepartitions.isRestored(e) => e
      }
      .filter(_.exists(_ eq bare))
      .map(e => PathAbove.replaced(plan, e, e.child))
      .find(RequiredDistribution.isKept(before, _)) match {
      case Some(less) =>
        val sorted = PathAbove.of(less, bare).fold(less)(_.under(RemoveRedundantSorts(_)))
        withoutNeedless(before, sorted, bare)
      case None => plan
    }

  /** Whether Spark's own rule, run alone on the plan without any splits, makes of it what came in. If not, another
    * extension's rule has had a hand in it. What the rule makes is only compared: it has Spark ensure again what the
    * whole plan needs.
    */
  def areAll(plan: SparkPlan): Boolean = {
    val made = OptimizeSkewedJoin(RequiredDistribution.ensureRequirements)(allUndone(plan))
    layouts(made) == layouts(plan) && shuffles(made) == shuffles(plan)
  }

  @tailrec
  private def allUndone(plan: SparkPlan): SparkPlan = JoinStage.in(plan).find(_.isSplit) match {
    case Some(stage) => allUndone(undone(plan, stage, stage.reading(None)))
    case None        => plan
  }

  private def layouts(plan: SparkPlan) = JoinStage.in(plan).map { stage =>
    (stage.shuffles.map(s => (s.stage.id, s.read)), stage.joins.map(SparkCosts.isSkewJoin))
  }

  def shuffles(plan: SparkPlan): Int = plan.collect { case s: ShuffleExchangeLike => s }.size
}

package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.plans.joins.{JoinStage, JoinState}
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.joins.ShuffledJoin

/** The last look at a stage before it runs: what is read below a repartition that the query's author wrote is not
  * torn apart for the sake of a decision, see [[UsersRepartitions]]; and in split joins part n of each of their shuffles must hold partners. Where
  * another rule has replaced one shuffle's parts since, by local reads say, all of them are read in whole again.
  * Spark's own check does not see it: a join that is marked as split requires no distribution.
  *
  * Hook: query stage optimizer, last. A no-op for joins that no policy was asked about.
  */
object MatchingReads extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    matching(FailOpen("users' repartitions", plan) {
      val reads = plan.collect {
        case AQEShuffleReadExec(s: ShuffleQueryStageExec, _) => s.id
      }
      checked(plan, UsersRepartitions.together(plan), Rewritten(reads = reads.toSet))
    })

  private def matching(plan: SparkPlan): SparkPlan = FailOpen("matching reads", plan) {
    if (!plan.exists(isSplit)) plan
    else {
      val torn = JoinStage.in(plan).filter(isOurs).filterNot(isMatching)
      val whole = torn.foldLeft(plan) { (current, stage) =>
        FailOpen.warnOnce(
          "a rule has changed how one side of a split join is read; its sides are read in whole"
        )
        current.transformDown { case p if p eq stage.root => stage.reading(None) }
      }
      checked(plan, whole, Rewritten.of(torn))
    }
  }

  private def checked(plan: SparkPlan, now: SparkPlan, rewritten: Rewritten): SparkPlan =
    PhysicalIntegrity.fault(plan, now, rewritten, FinalStage.required(plan)) match {
      case None      => now
      case Some(why) =>
        FailOpen.fault("matching reads", why)
        plan
    }

  private def isOurs(stage: JoinStage): Boolean =
    stage.joins.exists(JoinState.of(_).exists(_.skew.planned.isDefined))

  private def isSplit(plan: SparkPlan): Boolean = plan match {
    case j: ShuffledJoin => j.isSkewJoin
    case _               => false
  }

  private def isMatching(stage: JoinStage): Boolean =
    !stage.root.exists(isSplit) || {
      val isLocal = stage.root.exists {
        case r: AQEShuffleReadExec => r.isLocalRead
        case _                     => false
      }
      !isLocal && stage.shuffles.map(_.read.map(_.length)).distinct.length == 1
    }
}

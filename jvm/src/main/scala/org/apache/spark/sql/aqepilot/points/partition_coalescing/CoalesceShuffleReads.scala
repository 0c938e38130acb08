package org.apache.spark.sql.aqepilot.points.partition_coalescing

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.joins.HashBuilds
import org.apache.spark.sql.aqepilot.plans.promises.{
  FinalStage,
  PhysicalIntegrity,
  ReadTwice,
  Rewritten,
  SparksTasks
}
import org.apache.spark.sql.aqepilot.plans.shuffles.{CoalesceGroup, CoalesceGroups}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadRule, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ShuffleOrigin

/** The decision point `partition_coalescing`: reads a stage's finished shuffles with the tasks that policies
  * decide on.
  *
  * Hook: query stage optimizer, after Spark's OptimizeSkewInRebalancePartitions, CoalesceShufflePartitions and
  * OptimizeShuffleWithLocalRead. Their work on the group is undone and done again with the decided values. As
  * an AQEShuffleReadRule it is checked by AQE as they are: a result that would need another shuffle is dropped.
  *
  * A group whose reads another extension's rule has changed stays as that rule left it, and a stage in [[ReadTwice]]
  * as Spark left it.
  *
  * A no-op, down to the plan object, without policies, for stages that read no shuffle, and on null.
  */
object CoalesceShuffleReads extends Rule[SparkPlan] with AQEShuffleReadRule {

  override def supportedShuffleOrigins: Seq[ShuffleOrigin] = CoalesceGroups.origins

  override def apply(plan: SparkPlan): SparkPlan = {
    def concerns = plan.exists(_.isInstanceOf[ShuffleQueryStageExec])
    PointRule(PartitionCoalescingPoint, plan, concerns) { at =>
      if (ReadTwice.isIn(plan)) {
        ReadTwice.record(at, plan.logicalLink.map(Tables.described))
        plan
      } else new StageDecision(at, plan).decide
    }
  }
}

/** One stage. */
final private class StageDecision(at: PointRule[Any], plan: SparkPlan) {
  import StageDecision._

  private val groups = CoalesceGroups.of(plan)
  private val facts = new CoalescingFacts(plan, groups, at.executionId)
  private val sparks = new SparksValues(groups, at.conf, at.session.sparkContext)

  def decide: SparkPlan = {
    lazy val redone = new RedoneReads(at.session, plan, FinalStage.required(plan))
    val outcomes = groups.map { group =>
      val asked = at.ask()(facts.row(group, at.session.sparkContext, at.conf))
      (group, asked, asked.decision.map(a => redo(redone, group, CoalescingAnswer.of(a))))
    }
    val (result, fault) = combine(redone, outcomes.flatMap(_._3))
    FailOpen("record", ())(outcomes.foreach { case (group, asked, outcome) =>
      record(group, asked, outcome, fault)
    })
    result
  }

  private lazy val keptTasks: Option[(Reason, String)] =
    SparksTasks.ofStage(at.executionId, plan).map(why => (why, SparksTasks.detail(why)))

  private def redo(redone: RedoneReads, group: CoalesceGroup, answer: CoalescingAnswer): Outcome =
    FailOpen.recover[Outcome](at.point.name) { fault =>
      Left((Reason.InternalError, FailOpen.short(fault)))
    } {
      if (redone.isSparks(group))
        for {
          _ <- keptTasks.toLeft(())
          reads <- redone.of(group, answer).left.map(why => (Reason.DistributionBroken, why))
          _ <- HashBuilds
            .tooLarge(group.root, CoalesceGroups.replace(group.root, reads), at.guards)
            .map(why => (Reason.GuardHashBuildBytes, why))
            .toLeft(())
        } yield reads
      else
        Left((Reason.OtherExtension, "the shuffles are not read as Spark's own rules leave them"))
    }

  /** The plan with all that was decided; what came in, and why, where it is not valid. */
  private def combine(
      redone: RedoneReads,
      outcomes: Seq[Outcome]
  ): (SparkPlan, Option[(Reason, String)]) = {
    val reads = outcomes.collect { case Right(of) => of }.flatten.toMap
    val result = CoalesceGroups.replace(plan, reads)
    if (reads.isEmpty || result == plan) (plan, None)
    else if (!redone.isValid(result))
      (plan, Some((Reason.DistributionBroken, "the stage as decided would need another shuffle")))
    else
      PhysicalIntegrity.fault(
        plan,
        result,
        Rewritten(reads = reads.keySet),
        FinalStage.required(plan)
      ) match {
        case None      => (result, None)
        case Some(why) =>
          FailOpen.fault(at.point.name, why)
          (plan, Some((Reason.InvalidRewrite, why)))
      }
  }

  private def record(
      group: CoalesceGroup,
      asked: Asked[Any],
      outcome: Option[Outcome],
      fault: Option[(Reason, String)]
  ): Unit = {
    val became = outcome match {
      case Some(Left((reason, why))) => (reason, Some(why))
      case Some(_)                   =>
        fault.fold(PointRule.Applied) { case (reason, why) => (reason, Some(why)) }
      case None => PointRule.Applied
    }
    val sparkAnswer = PartitionCoalescingPoint.show(sparks.of(group))
    at.record(asked, became) {
      Subject(
        group.name,
        s"coalescing-${ids.incrementAndGet()}",
        id = Some(group.key),
        tables = Some(Tables.joined(group.stages.flatMap(_.logicalLink): _*)),
        sparkAnswer = Some(sparkAnswer),
        sparkStrategy = Some(group.strategy)
      )
    }
  }
}

private object StageDecision {

  /** How to read the group's shuffles, or why it stays as it is. */
  type Outcome = Either[(Reason, String), Map[Int, SparkPlan]]

  private val ids = new AtomicLong()
}

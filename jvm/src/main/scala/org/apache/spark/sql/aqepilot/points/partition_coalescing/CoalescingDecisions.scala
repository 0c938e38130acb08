package org.apache.spark.sql.aqepilot.points.partition_coalescing

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.joins.HashBuilds
import org.apache.spark.sql.aqepilot.plans.promises.{
  FinalStage,
  PhysicalIntegrity,
  Rewritten,
  SparksTasks
}
import org.apache.spark.sql.aqepilot.plans.shuffles.{CoalesceGroup, CoalesceGroups}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.execution.SparkPlan

/** The groups of one stage's shuffles. */
final private class CoalescingDecisions(at: PointRule[CoalescingDecision], plan: SparkPlan) {
  import CoalescingDecisions._

  private val stage = new StageToRead(plan, CoalesceGroups.of(plan), at.executionId)
  private val sparks = new SparksValues(stage, at.conf, at.session.sparkContext)
  private lazy val redone = new RedoneReads(at.session, plan, FinalStage.required(plan))

  /** The plan with the shuffles read as decided, or the one that came in. */
  def decided: SparkPlan = {
    val outcomes = stage.groups.map { group =>
      val asked = at.ask()(CoalescingFacts.all.row(at.query, new GroupToRead(stage, group)))
      (group, asked, asked.decision.map(redo(group, _)))
    }
    val (result, refused) = combine(outcomes.flatMap(_._3))
    FailOpen("record", ())(outcomes.foreach { case (group, asked, outcome) =>
      record(group, asked, outcome.flatMap(_.left.toOption.orElse(refused)))
    })
    result
  }

  private lazy val keptTasks: Option[Refused] =
    SparksTasks.ofStage(at.executionId, plan).map(why => (why, SparksTasks.detail(why)))

  private def redo(group: CoalesceGroup, decision: CoalescingDecision): Outcome =
    FailOpen.recover[Outcome](at.point.name) { fault =>
      Left((Reason.InternalError, FailOpen.short(fault)))
    } {
      if (redone.isSparks(group))
        for {
          _ <- keptTasks.toLeft(())
          reads <- redone.redo(group, decision).left.map(why => (Reason.DistributionBroken, why))
          _ <- HashBuilds
            .tooLarge(group.root, CoalesceGroups.replace(group.root, reads), at.guards)
            .map(why => (Reason.GuardHashBuildBytes, why))
            .toLeft(())
        } yield reads
      else
        Left((Reason.OtherExtension, "the shuffles are not read as Spark's own rules leave them"))
    }

  /** The plan with all that was decided; what came in, and why, where it is not valid. */
  private def combine(outcomes: Seq[Outcome]): (SparkPlan, Option[Refused]) = {
    val reads = outcomes.collect { case Right(decided) => decided }.flatten.toMap
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
      asked: Asked[CoalescingDecision],
      refused: Option[Refused]
  ): Unit = {
    val outcome = refused.fold(PointRule.Applied) { case (reason, why) => (reason, Some(why)) }
    val spark = sparks.decision(group)
    at.record(asked, outcome) {
      Subject(
        group.name,
        s"coalescing-${ids.incrementAndGet()}",
        id = Some(group.key),
        tables = Some(Tables.joined(group.stages.flatMap(_.logicalLink): _*)),
        sparkAnswer = Some(PartitionCoalescingPoint.show(spark.row)),
        sparkStrategy = Some(group.strategy)
      )
    }
  }
}

private object CoalescingDecisions {

  private type Refused = (Reason, String)

  /** How to read the group's shuffles, or why it stays as it is. */
  private type Outcome = Either[Refused, Map[Int, SparkPlan]]

  private val ids = new AtomicLong()
}

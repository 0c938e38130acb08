package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.decision.{
  Asked,
  Asking,
  Guardrails,
  Health,
  PolicySet,
  QueryFacts
}
import org.apache.spark.sql.aqepilot.doors.{ExplodingJoins, FailOpen, Sessions}
import org.apache.spark.sql.aqepilot.log.{DecisionRecord, Subject}
import org.apache.spark.sql.aqepilot.plans.{
  CoalesceGroup,
  CoalesceGroups,
  FinalStage,
  HashBuilds,
  ReadTwice,
  ShuffleFacts,
  Tables
}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadRule, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.ShuffleOrigin
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.points.partition_coalescing.{CoalescingAnswer, PartitionCoalescingPoint}
import io.aqepilot.terms.Reason

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

  private val point = PartitionCoalescingPoint

  override def supportedShuffleOrigins: Seq[ShuffleOrigin] = CoalesceGroups.origins

  override def apply(plan: SparkPlan): SparkPlan =
    DecisionRecord.failingOpen(point, plan) {
      lazy val set = PolicySet.of(conf)
      if (
        !Health.isLive(point) || !plan.exists(_.isInstanceOf[ShuffleQueryStageExec]) ||
        !set.isAsked(point)
      ) plan
      else
        Sessions.active.fold(plan) { session =>
          if (ReadTwice.isIn(plan)) {
            ReadTwice.record(session, point, plan.logicalLink.map(Tables.described))
            plan
          } else new StageDecision(session, plan, set).decide
        }
    }
}

/** One stage. */
final private class StageDecision(session: Sessions.Classic, plan: SparkPlan, set: PolicySet) {
  import StageDecision._

  private val point = PartitionCoalescingPoint
  private val conf: SQLConf = session.sessionState.conf
  private val executionId = QueryFacts.executionId(session.sparkContext)
  private val groups = CoalesceGroups.of(plan)
  private lazy val guards = Guardrails.of(conf, session.sparkContext)
  private val facts = new CoalescingFacts(plan, groups, executionId)

  def decide: SparkPlan = {
    lazy val redone = new RedoneReads(session, plan, FinalStage.required(plan))
    val outcomes = groups.map { group =>
      val asked = Asking.of(session, set, point, executionId) {
        facts.row(group, session.sparkContext, conf)
      }
      (group, asked, asked.enforced.map(a => redo(redone, group, CoalescingAnswer.of(a._2))))
    }
    val (result, valid) = combine(redone, outcomes.flatMap(_._3))
    FailOpen("record", ())(outcomes.foreach { case (group, asked, outcome) =>
      record(group, asked, outcome, valid)
    })
    result
  }

  private def redo(redone: RedoneReads, group: CoalesceGroup, answer: CoalescingAnswer): Outcome =
    FailOpen.recover[Outcome](point.name) { fault =>
      Left((Reason.InternalError, FailOpen.short(fault)))
    } {
      if (redone.isSparks(group))
        redone.of(group, answer).left.map(why => (Reason.DistributionBroken, why)).flatMap {
          reads =>
            val result = CoalesceGroups.replace(group.root, reads)
            HashBuilds
              .tooLarge(group.root, result, guards)
              .map(why => (Reason.GuardHashBuildBytes, why))
              .toLeft(reads)
        }
      else
        Left((Reason.OtherExtension, "the shuffles are not read as Spark's own rules leave them"))
    }

  /** The plan with all that was decided, and whether it is valid; what came in where it is not. */
  private def combine(redone: RedoneReads, outcomes: Seq[Outcome]): (SparkPlan, Boolean) = {
    val reads = outcomes.collect { case Right(of) => of }.flatten.toMap
    if (reads.isEmpty) (plan, true)
    else {
      val result = CoalesceGroups.replace(plan, reads)
      if (result == plan) (plan, true)
      else if (redone.isValid(result)) (result, true)
      else (plan, false)
    }
  }

  private def record(
      group: CoalesceGroup,
      asked: Asked,
      outcome: Option[Outcome],
      valid: Boolean
  ): Unit = {
    val subject = Subject(
      group.name,
      s"coalescing-${factsIds.incrementAndGet()}",
      id = Some(group.key),
      tables = Some(group.stages.flatMap(_.logicalLink).map(Tables.described).mkString(" ⋈ ")),
      sparkAnswer = Some(point.show(sparkAnswer(group))),
      sparkStrategy = Some(group.strategy)
    )
    val became = outcome match {
      case Some(Left((reason, why))) => (reason, Some(why))
      case Some(_) if !valid         =>
        (Reason.DistributionBroken, Some("the stage as decided would need another shuffle"))
      case _ => (Reason.Applied, None)
    }
    DecisionRecord.write(session, point, executionId, subject, asked, became)
  }

  /** The values that Spark's own rules went by, in the decision's fields. */
  private def sparkAnswer(group: CoalesceGroup): InternalRow = {
    val smallest = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_SIZE)
    val advisory = conf.getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES)
    val requested =
      if (group.stages.size == 1) group.stages.head.advisoryPartitionSize else None
    val target =
      if (ExplodingJoins.takeMinimumSize && group.hasExplodingJoin) smallest
      else requested.getOrElse(advisory)
    val coalesces = conf.coalesceShufflePartitionsEnabled
    def ifCoalesced(value: Any): Any = if (coalesces) value else null
    new GenericInternalRow(
      Array[Any](
        if (coalesces || group.isRebalance) target else null,
        ifCoalesced(smallest),
        ifCoalesced(minPartitions(group)),
        conf.getConf(SQLConf.LOCAL_SHUFFLE_READER_ENABLED),
        !coalesces
      )
    )
  }

  private def minPartitions(group: CoalesceGroup): Int = {
    val ofStage = conf.getConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM).getOrElse(
      if (conf.getConf(SQLConf.COALESCE_PARTITIONS_PARALLELISM_FIRST))
        session.sparkContext.defaultParallelism
      else 1
    )
    def bytes(of: Seq[CoalesceGroup]): Long =
      of.flatMap(_.stages).flatMap(_.mapStats).map(ShuffleFacts.of(_).total).sum
    lazy val total = bytes(groups)
    val share =
      if (groups.size == 1 || total == 0) ofStage
      else math.round(ofStage.toDouble * bytes(Seq(group)) / total).toInt
    math.max(1, share)
  }
}

private object StageDecision {

  /** How to read the group's shuffles, or why it stays as it is. */
  type Outcome = Either[(Reason, String), Map[Int, SparkPlan]]

  private val factsIds = new java.util.concurrent.atomic.AtomicLong()
}

package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.facts.Tables
import org.apache.spark.sql.aqepilot.plans.joins.{HashBuilds, PruningSides}
import org.apache.spark.sql.aqepilot.plans.promises.{OtherRules, SparksTasks}
import org.apache.spark.sql.aqepilot.plans.shuffles.{ShuffleGroup, ShuffleGroups}
import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.execution.SparkPlan

/** The groups of one plan's shuffles at one planning. */
final private class ShuffleDecisions(at: PointRule[Int], plan: SparkPlan, answers: ShuffleAnswers) {
  import ShuffleDecisions._

  /** The plan with the groups numbered as decided, or the one that came in. */
  def decided(groups: Seq[ShuffleGroup]): SparkPlan = {
    val (others, own) = groups.flatMap(change(_)).partition(c => isOthers(c.group))
    val (kept, changes) = own.partition(keeps(_).nonEmpty)
    kept.foreach(c => keeps(c).foreach(why => c.record(SparksTasks.refusal(why))))
    val (legal, illegal) = NumberedShuffles.validated(plan, changes)
    record(others, Reason.OtherExtension, OthersNumber)
    record(illegal, Reason.DistributionBroken, OtherDistribution)
    val changed = NumberedShuffles.changed(plan, legal)
    NumberedShuffles.fault(plan, changed, legal) match {
      case None =>
        legal.foreach(_.record(PointRule.Applied))
        changed
      case Some(why) =>
        FailOpen.fault(at.point.name, why)
        record(legal, Reason.InvalidRewrite, why)
        plan
    }
  }

  private lazy val parts = SparksTasks.of(at, plan)

  private def keeps(change: Change): Option[Reason] =
    change.group.shuffles.flatMap(parts.of).headOption

  private def record(changes: Seq[Change], reason: Reason, why: String): Unit =
    changes.foreach(_.record((reason, Some(why))))

  /** Whether another extension's rule has given the group its numbers: Spark's own shuffles that are not started
    * have the session's.
    */
  private def isOthers(group: ShuffleGroup): Boolean =
    group.started.isEmpty && OtherRules.prepareStages(at.session) &&
      group.numbers.exists(_ != at.conf.numShufflePartitions)

  private def change(group: ShuffleGroup): Option[Change] =
    group.started match {
      case Some(number) =>
        if (group.needless.isEmpty && group.numbers.forall(_ == number)) None
        else Some(Change(group, number, None, _ => ()))
      case None if group.shuffles.exists(PruningSides.isIn(_)) =>
        PruningSides.record(at, Some(tables(group)))
        None
      case None => ask(group)
    }

  private def ask(group: ShuffleGroup): Option[Change] = {
    val begun = System.nanoTime()
    val known = ShufflesToNumber.of(group, at.conf)
    val key = at.key((known, group.shapes))
    Option(answers.byKey.get(key)) match {
      case Some((id, asked)) => decidedChange(group, id, asked)(_ => ())
      case None              =>
        val asked = at.ask(begun = begun)(ShuffleGroupFacts.all.row(at.query, known))
        val id = ids.incrementAndGet()
        answers.byKey.put(key, (id, asked))
        decidedChange(group, id, asked)(at.record(asked, _)(subject(id, group)))
    }
  }

  /** @param record
    *   writes the answers into the record, if they are new, and what became of the one to carry out
    */
  private def decidedChange(group: ShuffleGroup, id: Long, asked: Asked[Int])(
      record: ((Reason, Option[String])) => Unit
  ): Option[Change] = asked.decision match {
    case Some(number) =>
      HashBuilds.tooLarge(group, number, at.guards, at.conf) match {
        case None      => Some(Change(group, number, Some(id), record))
        case Some(why) =>
          record((Reason.GuardHashBuildBytes, Some(why)))
          None
      }
    case None =>
      record((Reason.NullAnswer, None))
      None
  }

  private def subject(id: Long, group: ShuffleGroup) = Subject[Int](
    s"shuffle $id",
    s"shuffle-$id",
    id = Some(ShuffleFates.ShuffleId(id)),
    tables = Some(tables(group)),
    sparkAnswer = Some(group.number.toString),
    sparkStrategy = Some(ShuffleFates.strategy(group.number))
  )

  private def tables(group: ShuffleGroup): String =
    group.shuffles.flatMap(ShuffleGroups.link(_)).map(Tables.described).distinct.mkString(" ⋈ ")
}

private object ShuffleDecisions {

  private val OthersNumber = "the shuffles do not have the number that Spark gives to its own"
  private val OtherDistribution = "the plan needs another distribution than it would then have"

  private val ids = new AtomicLong()
}

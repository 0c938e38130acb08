package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import java.util.IdentityHashMap

import org.apache.spark.sql.aqepilot.plans.promises.{
  PhysicalIntegrity,
  RequiredDistribution,
  Rewritten,
  UsersRepartitions
}
import org.apache.spark.sql.aqepilot.plans.shuffles.{ShuffleGroup, ShuffleGroups}
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.plans.physical.UnspecifiedDistribution
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/** What becomes of a group: the number it gets, and how to tell.
  *
  * @param id
  *   of the answer that gave the number; None where the number is a started shuffle's
  */
final private case class Change(
    group: ShuffleGroup,
    number: Int,
    id: Option[Long],
    record: ((Reason, Option[String])) => Unit
)

/** Puts numbers of partitions into a plan's shuffles, as far as the plan stays valid. */
private object NumberedShuffles {

  /** The changes that are legal together, and the rest. */
  def validated(plan: SparkPlan, changes: Seq[Change]): (Seq[Change], Seq[Change]) =
    if (changes.isEmpty || isUnchangedOrLegal(plan, changed(plan, changes))) (changes, Nil)
    else
      changes.foldLeft((Seq.empty[Change], Seq.empty[Change])) { case ((legal, illegal), c) =>
        if (isLegal(plan, changed(plan, legal :+ c))) (legal :+ c, illegal)
        else (legal, illegal :+ c)
      }

  private def isUnchangedOrLegal(before: SparkPlan, plan: SparkPlan): Boolean =
    (plan eq before) || isLegal(before, plan)

  private def isLegal(before: SparkPlan, plan: SparkPlan): Boolean =
    RequiredDistribution.isKept(before, plan) &&
      UsersRepartitions.needless(before, plan).isEmpty

  /** What is wrong with a plan that has these changes; None for nothing. */
  def fault(before: SparkPlan, after: SparkPlan, changes: Seq[Change]): Option[String] = {
    val groups = changes.map(_.group)
    val rewritten =
      Rewritten(numbered = groups.flatMap(_.shuffles), dropped = groups.flatMap(_.needless))
    val required = RequiredDistribution.current.getOrElse(UnspecifiedDistribution)
    PhysicalIntegrity.fault(before, after, rewritten, required)
  }

  def changed(plan: SparkPlan, changes: Seq[Change]): SparkPlan = {
    val numbers = new IdentityHashMap[SparkPlan, Change]()
    val needless = new IdentityHashMap[SparkPlan, Change]()
    changes.foreach { c =>
      c.group.shuffles.foreach(numbers.put(_, c))
      c.group.needless.foreach(needless.put(_, c))
    }
    if (numbers.isEmpty) plan
    else
      plan.transformDown {
        case e: ShuffleExchangeExec if numbers.containsKey(e) =>
          val c = numbers.get(e)
          val numbered = ShuffleGroups.withNumber(e, c.number)
          c.id.foreach(numbered.setTagValue(SetShufflePartitions.tag, _))
          numbered
        case e: ShuffleExchangeExec if needless.containsKey(e) => e.child
      }
  }
}

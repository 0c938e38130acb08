package org.apache.spark.sql.aqepilot.points.write_distribution

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.facts.{FactsRow, Tables}
import org.apache.spark.sql.aqepilot.record.Subject
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, RebalancePartitions, Sort}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/** Asks about one write, and has its rows rebalanced where that is decided. */
private[write_distribution] object Distribution {

  private val ids = new AtomicLong()

  /** On a rebalance of ours: the id of the write. */
  val tag: TreeNodeTag[Long] = TreeNodeTag[Long]("aqepilot.write")

  /** On a command that has been decided on. */
  val done: TreeNodeTag[Unit] = TreeNodeTag[Unit]("aqepilot.distributed")

  /** The command, or one that has the rows rebalanced. */
  def decided(at: PointRule[Any], write: WriteTarget): LogicalPlan = {
    val facts = new WriteFacts(write, at.session, at.executionId)
    val asked = at.ask()(facts.row)
    val id = ids.incrementAndGet()
    val decision = asked.decision.map(row => WriteAnswer.of(row))
    val by = decision.filter(_.rebalances)
      .map(_.by(new FactsRow(WriteDistributionPoint.facts, asked.facts)))
    val plan = by.fold(write.command) { names =>
      val rebalance =
        RebalancePartitions(
          write.attributes(names),
          write.below,
          optAdvisoryPartitionSize = decision.flatMap(_.targetBytes)
        )
      rebalance.setTagValue(tag, id)
      write.above(rebalance)
    }
    val isRight =
      by.forall(names => write.attributes(names).size == names.size) && isSame(write, plan)
    val fault =
      if (isRight) None
      else Some("the rows would not be the query's, or not distributed as decided")
    at.recordRewrite(asked, fault) {
      Subject(
        s"write $id",
        s"write-$id",
        id = Some(WriteFates.WriteId(id)),
        tables = Some(Tables.described(write.query)),
        sparkStrategy = Some(WriteFates.Plain),
        chosen = row => Some(WriteFates.Rebalances(WriteAnswer.of(row).rebalances))
      )
    }
    if (fault.isEmpty) plan else write.command
  }

  private def isSame(write: WriteTarget, plan: LogicalPlan): Boolean =
    (plan eq write.command) || {
      val query = write.command.children.head
      val isAbove = (write.sort, plan.children) match {
        case (None, Seq(r))              => rebalances(write, r)
        case (Some(was), Seq(now: Sort)) =>
          now.order == was.order && !now.global && rebalances(write, now.child)
        case _ => false
      }
      isAbove && plan.getClass == write.command.getClass && plan.resolved &&
      plan.children.head.output == query.output
    }

  private def rebalances(write: WriteTarget, plan: LogicalPlan): Boolean = plan match {
    case r: RebalancePartitions => r.missingInput.isEmpty && (r.child eq write.below)
    case _                      => false
  }
}

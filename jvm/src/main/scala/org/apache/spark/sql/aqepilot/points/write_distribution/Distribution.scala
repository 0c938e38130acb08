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
  def decided(at: PointRule[WriteDecision], write: WriteTarget): LogicalPlan = {
    val known = new WriteToDistribute(write, at.conf, at.session.sparkContext)
    val asked = at.ask()(WriteFacts.all.row(at.query, known))
    val id = ids.incrementAndGet()
    val facts = new FactsRow(WriteDistributionPoint.facts, asked.facts)
    val rebalance = asked.decision.filter(_.rebalances).map { decision =>
      Rebalance(id, decision.by(facts), decision.targetBytes)
    }
    val plan = rebalance.fold(write.command)(_.applied(write))
    val fault =
      if (isSame(write, plan) && rebalance.forall(_.isWhole(write))) None
      else Some("the rows would not be the query's, or not distributed as decided")
    at.recordRewrite(asked, fault)(subject(write, id))
    if (fault.isEmpty) plan else write.command
  }

  /** @param by
    *   written columns, by the names that the write has for them
    */
  private case class Rebalance(id: Long, by: Seq[String], targetBytes: Option[Long]) {

    def applied(write: WriteTarget): LogicalPlan = {
      val rows = RebalancePartitions(
        write.attributes(by),
        write.below,
        optAdvisoryPartitionSize = targetBytes
      )
      rows.setTagValue(tag, id)
      write.above(rows)
    }

    /** Whether the rows have each of the columns. */
    def isWhole(write: WriteTarget): Boolean = write.attributes(by).size == by.size
  }

  private def subject(write: WriteTarget, id: Long): Subject[WriteDecision] = Subject(
    s"write $id",
    s"write-$id",
    id = Some(WriteFates.WriteId(id)),
    tables = Some(Tables.described(write.query)),
    sparkStrategy = Some(WriteFates.Plain),
    chosen = Some(_)
  )

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

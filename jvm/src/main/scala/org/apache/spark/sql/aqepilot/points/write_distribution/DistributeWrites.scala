package org.apache.spark.sql.aqepilot.points.write_distribution

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.sql.aqepilot.log.Subject
import org.apache.spark.sql.aqepilot.plans.Tables
import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, RebalancePartitions}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}
import org.apache.spark.sql.execution.datasources.{V1WriteCommand, WriteFiles}

import io.aqepilot.points.write_distribution.{WriteAnswer, WriteDistributionPoint}
import io.aqepilot.terms.FactsRow

/** The decision point `write_distribution`: puts Spark's own `RebalancePartitions` above a query whose rows are
  * written to files, where a policy says so.
  *
  * Hook: after the optimiser's operator rules and right before `V1Writes`, which sorts by the dynamic partition
  * columns above what it finds, so above the rebalance. Each write is asked about once: CREATE TABLE AS SELECT runs
  * an insert of its own, and only that is a `V1WriteCommand`. A command that the rule has been at is left alone when
  * the rule comes to it again, as it does where Spark applies a batch twice (`spark.testing`).
  *
  * What a shuffle may cost in rows: a task of a plain write that is tried again writes all of its rows anew, whatever they
  * are. Above a shuffle, rows of a map task that runs again, as its executor was lost, meet rows that others have
  * written already: if it gives other rows then, some are written twice and others not at all. Spark does not see that
  * `rand()` or a LIMIT give other rows, so queries with such are left alone.
  *
  * A no-op without policies.
  */
object DistributeWrites extends Rule[LogicalPlan] {

  private val point = WriteDistributionPoint
  private val ids = new AtomicLong()

  /** On a rebalance of ours: the id of the write. */
  val tag: TreeNodeTag[Long] = TreeNodeTag[Long]("aqepilot.write")

  /** On a command that this rule has been at. */
  private val done = TreeNodeTag[Unit]("aqepilot.distributed")

  override def apply(plan: LogicalPlan): LogicalPlan =
    PointRule(point, plan, plan.containsPattern(TreePattern.COMMAND))(distributed(_, plan))

  /** Several writes are in one plan where one query feeds several inserts (`FROM t INSERT INTO ...`). */
  private def distributed(at: PointRule, plan: LogicalPlan): LogicalPlan = plan match {
    case write: V1WriteCommand =>
      val isPlanned = write.query.isInstanceOf[WriteFiles] || write.getTagValue(done).nonEmpty
      if (isPlanned) write else decided(at, write)
    case other if other.containsPattern(TreePattern.COMMAND) =>
      other.mapChildren(distributed(at, _))
    case other => other
  }

  private def decided(at: PointRule, write: V1WriteCommand): LogicalPlan = {
    write.setTagValue(done, ())
    val facts = new WriteFacts(write, at.session, at.executionId)
    val asked = at.ask()(facts.row)
    val id = ids.incrementAndGet()
    val decision = asked.enforced.map { case (_, row) => WriteAnswer.of(row) }
    val by = decision.filter(_.rebalances).map(_.by(new FactsRow(point.facts, asked.facts)))
    val plan = by.fold[LogicalPlan](write) { names =>
      val rebalance =
        RebalancePartitions(
          facts.attributes(names),
          write.query,
          optAdvisoryPartitionSize = decision.flatMap(_.targetBytes)
        )
      rebalance.setTagValue(tag, id)
      write.withNewChildren(Seq(rebalance))
    }
    val isRight =
      by.forall(names => facts.attributes(names).size == names.size) && isSame(write, plan)
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
    if (fault.isEmpty) plan else write
  }

  private def isSame(write: V1WriteCommand, plan: LogicalPlan): Boolean = (plan eq write) || {
    plan match {
      case now: V1WriteCommand =>
        val isAbove = now.query match {
          case r: RebalancePartitions => r.missingInput.isEmpty && (r.child eq write.query)
          case _                      => false
        }
        isAbove && now.resolved && now.query.output == write.query.output
      case _ => false
    }
  }
}

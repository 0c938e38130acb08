package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.rule.PointRule
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, V2WriteCommand}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.execution.datasources.{V1WriteCommand, WriteFiles}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

/** The decision point `write_distribution`: puts Spark's own `RebalancePartitions` above a query whose rows are
  * written to files, where a policy decides so.
  *
  * Hook: after the optimiser's operator rules and right before `V1Writes`, which sorts by the dynamic partition
  * columns above what it finds, so above the rebalance. Each write is asked about once: CREATE TABLE AS SELECT runs
  * an insert of its own, and only that is a `V1WriteCommand`. A command that the rule has been at is left alone when
  * the rule comes to it again, as it does where Spark applies a batch twice (`spark.testing`).
  *
  * `V2Writes` comes right after, too. A write to a table of the DataSource V2 interface is not known before: only
  * the write has its requirements, and to make one more may change the table. So this rule keeps the query in mind, and
  * [[DistributeV2Writes]] decides.
  *
  * What a shuffle may cost in rows: a task of a plain write that is tried again writes all of its rows anew, whatever they
  * are. Above a shuffle, rows of a map task that runs again, as its executor was lost, meet rows that others have
  * written already: if it gives other rows then, some are written twice and others not at all. Spark does not see that
  * `rand()` or a LIMIT give other rows, so queries with such are left alone.
  *
  * A no-op without policies.
  */
object DistributeWrites extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    PointRule(WriteDistributionPoint, plan, plan.containsPattern(TreePattern.COMMAND))(
      distributed(_, plan)
    )

  /** Several writes are in one plan where one query feeds several inserts (`FROM t INSERT INTO ...`). */
  private def distributed(at: PointRule[WriteDecision], plan: LogicalPlan): LogicalPlan =
    plan match {
      case write: V1WriteCommand =>
        val isPlanned =
          write.query.isInstanceOf[WriteFiles] || write.getTagValue(Distribution.done).nonEmpty
        if (isPlanned) write
        else {
          write.setTagValue(Distribution.done, ())
          Distribution.decided(at, new V1Target(write, at.conf))
        }
      case write: V2WriteCommand =>
        V2Target.keep(write)
        write
      case other if other.containsPattern(TreePattern.COMMAND) =>
        other.mapChildren(distributed(at, _))
      case other => other
    }
}

/** The same for tables of the DataSource V2 interface that leave the distribution of rows to Spark.
  *
  * Hook: planner strategy, before Spark's own, when the table has made its write. AQE plans the query alone again, not
  * the write, so each write is asked about once.
  */
object DistributeV2Writes extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case write: V2WriteCommand =>
      PointRule(
        WriteDistributionPoint,
        Seq.empty[SparkPlan],
        write.getTagValue(Distribution.done).isEmpty
      ) {
        decided(_, write)
      }
    case _ => Nil
  }

  private def decided(at: PointRule[WriteDecision], write: V2WriteCommand): Seq[SparkPlan] =
    V2Target.decidable(write, at.conf).map(Distribution.decided(at, _)) match {
      case Some(plan) if plan ne write =>
        plan.setTagValue(Distribution.done, ())
        Seq(planLater(plan))
      case _ => Nil
    }
}

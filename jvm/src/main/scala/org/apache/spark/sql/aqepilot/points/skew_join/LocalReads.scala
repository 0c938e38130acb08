package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.aqepilot.plans.{JoinStage, RequiredDistribution}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnspecifiedDistribution}
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec,
  OptimizeShuffleWithLocalRead,
  QueryStageExec
}
import org.apache.spark.sql.execution.exchange.{Exchange, ValidateRequirements}

/** Foresees Spark's local reads: the streamed side of a broadcast join read where it was written, each task some
  * of one map task's output, whatever partition it is of.
  *
  * Source: `OptimizeShuffleWithLocalRead`, which AQE runs when a stage is made, and whose result it drops where
  * an operator above needs the rows distributed.
  */
private object LocalReads {

  /** Whether Spark will read the stage's shuffle so: then a large partition is no one task's. */
  def splits(plan: SparkPlan, stage: JoinStage): Boolean = stage.shuffles.forall { shuffle =>
    val around = plan.collect { case e: Exchange if e.child.exists(_ eq stage.root) => e.child }
    val top = around.lastOption.getOrElse(plan)
    val read = OptimizeShuffleWithLocalRead(top.transform {
      case s: QueryStageExec if !s.isMaterialized => Unfinished(s)
    })
    val required = if (around.nonEmpty) None else RequiredDistribution.current
    read.exists {
      case r: AQEShuffleReadExec => r.isLocalRead && (r.child eq shuffle.stage)
      case _                     => false
    } && ValidateRequirements.validate(read, required.getOrElse(UnspecifiedDistribution))
  }
}

/** Stands for a stage that still runs: Spark's rule reads the sizes of every shuffle that it sees, and fails at one
  * that has none yet.
  */
final private case class Unfinished(stage: QueryStageExec) extends LeafExecNode {
  override def output: Seq[Attribute] = stage.output
  override def outputPartitioning: Partitioning = stage.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = stage.outputOrdering
  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException("only looked at")
}

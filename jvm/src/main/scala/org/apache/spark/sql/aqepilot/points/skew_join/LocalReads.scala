package org.apache.spark.sql.aqepilot.points.skew_join

import org.apache.spark.sql.aqepilot.plans.joins.JoinStage
import org.apache.spark.sql.aqepilot.plans.promises.{Opaque, RequiredDistribution}
import org.apache.spark.sql.catalyst.plans.physical.UnspecifiedDistribution
import org.apache.spark.sql.execution.SparkPlan
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
      // Spark's rule reads the sizes of every shuffle that it sees, and fails at one that has none yet.
      case s: QueryStageExec if !s.isMaterialized => Opaque(s)
    })
    val required = if (around.nonEmpty) None else RequiredDistribution.current
    read.exists {
      case r: AQEShuffleReadExec => r.isLocalRead && (r.child eq shuffle.stage)
      case _                     => false
    } && ValidateRequirements.validate(read, required.getOrElse(UnspecifiedDistribution))
  }
}

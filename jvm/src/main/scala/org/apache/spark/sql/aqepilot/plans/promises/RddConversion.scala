package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.facts.QueryFacts
import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.aqepilot.spark.Calls

/** Whether the query that a thread plans or runs leaves Spark SQL as an RDD, whose partitions the user's code sees.
  *
  * `Dataset.rdd` and PySpark's `df.rdd` and `foreachPartition` run a plan outside an SQL execution; so does what calls
  * `executedPlan.execute()` itself. A planning outside one may also be that of `explain`, which changes nothing, so
  * there only the calls on the stack tell. `checkpoint` makes an RDD within an execution, and so does `df.rdd` in a
  * function of `foreachBatch`. A command that saves by a source's own means may do so, too, but hands it to nobody.
  *
  * A cached plan runs in the execution that first reads it: in one with a barrier stage, its tasks may be that stage's.
  */
private[aqepilot] object RddConversion {

  private val Conversions = Set("toRdd", "checkpoint", "localCheckpoint")
  private val Converting = Set("QueryExecution", "Dataset")
  private val Saving =
    Set("SaveIntoDataSourceCommand", "InsertIntoDataSourceCommand", "SupportsV1Write")
  private val Caching = "CachedRDDBuilder"
  private val Telling = Converting ++ Saving + Caching

  /** Why the partitions of the plan's last stage have to be Spark's own.
    *
    * @param isRunning
    *   whether the plan is executed, and not merely planned
    */
  def leaving(executionId: Option[Long], isRunning: Boolean): Option[Reason] =
    if (isRunning && executionId.isEmpty) Some(Reason.RddPartitions)
    else {
      val calls = Calls.by(isTelling).map { case (owner, method) => (simpleName(owner), method) }
      if (isConversion(calls)) Some(Reason.RddPartitions)
      else if (calls.exists(_._1 == Caching) && hasBarrier(executionId)) Some(Reason.BarrierStage)
      else None
    }

  /** @param calls
    *   class and method
    */
  private[plans] def isConversion(calls: Seq[(String, String)]): Boolean =
    calls.exists { case (owner, method) => Converting(owner) && converts(method) } &&
      !calls.exists { case (owner, _) => Saving(owner) }

  /** Scala computes a lazy value in a method of its own. */
  private def converts(method: String) = Conversions.exists { name =>
    method == name || method.startsWith(name + "$") || method.startsWith(s"$$anonfun$$$name$$")
  }

  private def isTelling(className: String) =
    className.startsWith("org.apache.spark.sql.") && Telling(simpleName(className))

  private def simpleName(className: String) =
    className.substring(className.lastIndexOf('.') + 1).stripSuffix("$")

  private def hasBarrier(executionId: Option[Long]): Boolean =
    QueryFacts.execution(executionId).exists(q => SparksTasks.hasBarrier(q.optimizedPlan))
}

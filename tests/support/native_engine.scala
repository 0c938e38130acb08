package org.apache.comet {

  import org.apache.spark.sql.catalyst.rules.Rule
  import org.apache.spark.sql.comet.{
    CometHashJoinExec,
    CometShuffleExchangeExec,
    CometSortMergeJoinExec
  }
  import org.apache.spark.sql.execution.SparkPlan
  import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
  import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
  import org.apache.spark.sql.{SparkSessionExtensions, SparkSessionExtensionsProvider}

  /** An engine of Comet's names, whose operators do what Spark's do. */
  class CometSparkSessionExtensions extends SparkSessionExtensionsProvider {
    override def apply(e: SparkSessionExtensions): Unit = e.injectQueryStagePrepRule(_ => Takes)
  }

  /** Takes shuffles, and all joins but those of which `spark.engine.leaves` has the type. */
  object Takes extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan =
      if (conf.getConfString("spark.comet.enabled", "true") != "true") plan
      else {
        val leaves = conf.getConfString("spark.engine.leaves", "")
        plan.transformUp {
          case j: SortMergeJoinExec if j.joinType.sql != leaves =>
            CometSortMergeJoinExec(j, j.left, j.right)
          case j: ShuffledHashJoinExec if j.joinType.sql != leaves =>
            CometHashJoinExec(j, j.left, j.right)
          case e: ShuffleExchangeExec => CometShuffleExchangeExec(e, e.child)
        }
      }
  }
}

package org.apache.spark.sql.comet {

  import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ShuffleExchangeLike}
  import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}
  import org.apache.spark.sql.execution.{BinaryExecNode, ShufflePartitionSpec, SparkPlan}

  case class CometSortMergeJoinExec(
      originalPlan: SortMergeJoinExec,
      left: SparkPlan,
      right: SparkPlan
  ) extends BinaryExecNode {
    override def output = originalPlan.output
    override def outputPartitioning = originalPlan.outputPartitioning
    override protected def doExecute() = originalPlan.copy(left = left, right = right).execute()
    override protected def withNewChildrenInternal(l: SparkPlan, r: SparkPlan) =
      copy(left = l, right = r)
  }

  case class CometHashJoinExec(
      originalPlan: ShuffledHashJoinExec,
      left: SparkPlan,
      right: SparkPlan
  ) extends BinaryExecNode {
    def buildSide = originalPlan.buildSide
    override def output = originalPlan.output
    override def outputPartitioning = originalPlan.outputPartitioning
    override protected def doExecute() = originalPlan.copy(left = left, right = right).execute()
    override protected def withNewChildrenInternal(l: SparkPlan, r: SparkPlan) =
      copy(left = l, right = r)
  }

  case class CometShuffleExchangeExec(originalPlan: ShuffleExchangeExec, child: SparkPlan)
      extends ShuffleExchangeLike {
    @transient private lazy val shuffle = originalPlan.copy(child = child)
    override def outputPartitioning = originalPlan.outputPartitioning
    override def numMappers = shuffle.numMappers
    override def numPartitions = shuffle.numPartitions
    override def advisoryPartitionSize = originalPlan.advisoryPartitionSize
    override def shuffleOrigin = originalPlan.shuffleOrigin
    override def mapOutputStatisticsFuture = shuffle.submitShuffleJob
    override def getShuffleRDD(specs: Array[ShufflePartitionSpec]) = shuffle.getShuffleRDD(specs)
    override def runtimeStatistics = shuffle.runtimeStatistics
    override protected def doExecute() = shuffle.execute()
    override protected def withNewChildInternal(c: SparkPlan) = copy(child = c)
  }
}

package org.apache.spark.sql.aqepilot.rewrite

import org.apache.spark.sql.aqepilot.facts.{Estimates, JoinSide, ShuffleFacts}
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan
}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec
import org.apache.spark.sql.internal.SQLConf

import io.aqepilot.decision.{Guards, HashTable}

/** Whether tasks that read more would still hold the tables of the shuffled hash joins of their stage, whoever chose
  * those: such a join cannot spill.
  */
private[rewrite] object HashBuilds {

  /** Why a stage that reads its finished shuffles otherwise would build too large a table, if it would: the guard
    * allows less, and as the stage was before the largest table was smaller.
    */
  def tooLarge(before: SparkPlan, after: SparkPlan, guards: Guards): Option[String] = {
    val needed = largest(after, guards.growth)
    HashTable.tooLarge(needed, guards).filter(_ => needed > largest(before, guards.growth))
  }

  /** The same of shuffles that are not started, where they get fewer partitions than Spark's number. */
  def tooLarge(group: ShuffleGroup, number: Int, guards: Guards, conf: SQLConf): Option[String] =
    if (number >= group.number) None
    else {
      val built = group.readers.flatMap(builds).flatMap(newShuffles)
      val own = built.filter(shuffle => group.shuffles.exists(_ eq shuffle))
      own.map(ShuffleGroups.link).flatMap {
        case Some(plan) if Estimates.isOfRows(plan, conf) =>
          HashTable.tooLarge(ofEstimate(plan, guards.growth) / number, guards)
        case _ =>
          Some(
            "a shuffled hash join builds from a shuffle whose size is not known: it keeps Spark's " +
              s"${group.number} partitions at least"
          )
      }.headOption
    }

  private def ofEstimate(plan: LogicalPlan, growth: Double): Long = {
    val bytes = JoinSide.toLong(plan.stats.sizeInBytes)
    val count = plan.stats.rowCount.map(JoinSide.toLong)
    val rows = HashTable.rows(count, bytes, Some(JoinSide.rowBytes(plan)))
    HashTable.bytes(bytes.toDouble, rows, growth)
  }

  /** The sides, in a stage, from which shuffled hash joins build. */
  private def builds(stage: SparkPlan): Seq[SparkPlan] = stage match {
    case _: Exchange             => Nil
    case j: ShuffledHashJoinExec =>
      (if (j.buildSide == BuildLeft) j.left else j.right) +: j.children.flatMap(builds)
    case other => other.children.flatMap(builds)
  }

  private def newShuffles(plan: SparkPlan): Seq[ShuffleExchangeExec] = plan match {
    case e: ShuffleExchangeExec => Seq(e)
    case other                  => other.children.flatMap(newShuffles)
  }

  private def largest(stage: SparkPlan, growth: Double): Long =
    builds(stage).flatMap(CoalesceGroups.readsOf).map { case (shuffle, read) =>
      ofTask(shuffle, read, growth)
    }.foldLeft(0L)(math.max)

  /** The largest table that one task builds of a shuffle's rows. */
  private def ofTask(shuffle: ShuffleQueryStageExec, read: SparkPlan, growth: Double): Long =
    shuffle.mapStats.fold(0L) { stats =>
      val sizes = ShuffleFacts.of(stats)
      val total = sizes.total
      val largest = read match {
        case r: AQEShuffleReadExec =>
          r.partitionSpecs.foldLeft(0L)((most, s) => math.max(most, bytes(s, sizes.bytes)))
        case _ => sizes.max
      }
      val runtime = shuffle.getRuntimeStatistics
      val all = JoinSide.toLong(runtime.sizeInBytes)
      val rows = HashTable.rows(runtime.rowCount.map(JoinSide.toLong), all, None)
      if (total == 0) 0L
      else {
        val whole = math.max(all, total).toDouble
        HashTable.bytesOfPart(whole * largest / total, whole, rows, growth)
      }
    }

  private def bytes(spec: ShufflePartitionSpec, sizes: Array[Long]): Long = spec match {
    case c: CoalescedPartitionSpec =>
      var sum = 0L
      var i = c.startReducerIndex
      while (i < math.min(c.endReducerIndex, sizes.length)) {
        sum += sizes(i)
        i += 1
      }
      sum
    case p: PartialReducerPartitionSpec => p.dataSize
    case _                              => 0L
  }
}

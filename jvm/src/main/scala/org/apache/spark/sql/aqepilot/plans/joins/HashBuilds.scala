package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.aqepilot.spark.engines.StandIn
import org.apache.spark.sql.aqepilot.decision.Guards
import org.apache.spark.sql.aqepilot.facts.{Estimates, JoinSide, ShuffleFacts}
import org.apache.spark.sql.aqepilot.plans.shuffles.{CoalesceGroups, ShuffleGroup, ShuffleGroups}
import org.apache.spark.sql.aqepilot.spark.HashTable
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aqepilot.SparkUnions
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec
import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan,
  UnionExec
}
import org.apache.spark.sql.internal.SQLConf

/** Whether tasks that read more would still hold the tables of all shuffled hash joins of their stage, whoever chose
  * those: such a join cannot spill.
  */
private[aqepilot] object HashBuilds {

  /** Why a stage that reads its finished shuffles otherwise would have a task build too large tables, if it would: the
    * guard allows less, and as the stage was before no task needed as much.
    */
  def tooLarge(before: SparkPlan, after: SparkPlan, guards: Guards): Option[String] = {
    val needed = largest(after, guards.growth)
    guards.hashBuildTooLarge(needed).filter(_ => needed > largest(before, guards.growth))
  }

  /** The same of shuffles that are not started, where they get fewer partitions than Spark's number. */
  def tooLarge(group: ShuffleGroup, number: Int, guards: Guards, conf: SQLConf): Option[String] =
    if (number >= group.number) None
    else {
      val built = group.readers.map { reader =>
        builds(reader).flatMap(newShuffles).filter(s => group.shuffles.exists(_ eq s)).map(
          ShuffleGroups.link(_).filter(Estimates.isOfRows(_, conf))
        )
      }
      if (built.exists(_.contains(None)))
        Some(
          "a shuffled hash join builds from a shuffle whose size is not known: it keeps Spark's " +
            s"${group.number} partitions at least"
        )
      else {
        val needed = built.map(_.flatten.map(ofEstimate(_, guards.growth) / number).sum)
        guards.hashBuildTooLarge(needed.foldLeft(0L)(math.max))
      }
    }

  private def ofEstimate(plan: LogicalPlan, growth: Double): Long = {
    val bytes = JoinSide.toLong(Estimates.of(plan).sizeInBytes)
    val count = Estimates.of(plan).rowCount.map(JoinSide.toLong)
    val rows = HashTable.rows(count, bytes, Some(JoinSide.rowBytes(plan)))
    HashTable.bytes(bytes.toDouble, rows, growth)
  }

  /** The sides, in a stage, from which shuffled hash joins build. */
  private def builds(stage: SparkPlan): Seq[SparkPlan] = stage match {
    case _: Exchange       => Nil
    case BuildsFrom(build) => build +: stage.children.flatMap(builds)
    case other             => other.children.flatMap(builds)
  }

  /** A shuffled hash join, Spark's or an engine's, by the side that it builds from. */
  private object BuildsFrom {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case j: ShuffledHashJoinExec => Some(if (j.buildSide == BuildLeft) j.left else j.right)
      case other                   =>
        StandIn.join(other).filter(_.kind == StandIn.ShuffledHash).map { join =>
          if (join.buildSide.contains(BuildLeft)) other.children.head else other.children.last
        }
    }
  }

  private def newShuffles(plan: SparkPlan): Seq[ShuffleExchangeExec] = plan match {
    case e: ShuffleExchangeExec => Seq(e)
    case other                  => other.children.flatMap(newShuffles)
  }

  /** Memory of the tables of the task that needs most for them. */
  private def largest(stage: SparkPlan, growth: Double): Long =
    tables(stage, growth).foldLeft(0L)(math.max)

  /** Memory of each task's tables: a task keeps those of all its joins until it ends. */
  private def tables(stage: SparkPlan, growth: Double): Array[Long] = stage match {
    case _: Exchange       => Array.empty
    case BuildsFrom(build) =>
      val own = CoalesceGroups.readsOf(build).map { case (shuffle, read) =>
        ofTasks(shuffle, read, growth)
      }
      (own.foldLeft(none)(merged(_, _)(math.max(_, _))) +: stage.children.map(tables(_, growth)))
        .reduce(merged(_, _)(_ + _))
    case u: UnionExec if SparkUnions.readsApart(u) =>
      u.children.flatMap(tables(_, growth)).toArray
    case other => other.children.map(tables(_, growth)).foldLeft(none)(merged(_, _)(_ + _))
  }

  private val none = Array.empty[Long]

  /** Of two parts of a stage, task by task; where their tasks do not go in pairs, of the largest of each. */
  private def merged(one: Array[Long], other: Array[Long])(by: (Long, Long) => Long): Array[Long] =
    if (one.isEmpty) other
    else if (other.isEmpty) one
    else if (one.length == other.length) one.zip(other).map { case (a, b) => by(a, b) }
    else Array(by(one.max, other.max))

  /** The table that each task builds of a shuffle's rows. */
  private def ofTasks(
      shuffle: ShuffleQueryStageExec,
      read: SparkPlan,
      growth: Double
  ): Array[Long] =
    shuffle.mapStats.fold(none) { stats =>
      val sizes = ShuffleFacts.of(stats)
      val total = sizes.total
      val parts = read match {
        case r: AQEShuffleReadExec => r.partitionSpecs.map(bytes(_, sizes.bytes)).toArray
        case _                     => sizes.bytes
      }
      val runtime = shuffle.getRuntimeStatistics
      val all = JoinSide.toLong(runtime.sizeInBytes)
      val rows = HashTable.rows(runtime.rowCount.map(JoinSide.toLong), all, None)
      val whole = math.max(all, total).toDouble
      if (total == 0) parts.map(_ => 0L)
      else parts.map(part => HashTable.bytesOfPart(whole * part / total, whole, rows, growth))
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

package org.apache.spark.sql.aqepilot.plans.joins

import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.{
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan,
  UnaryExecNode
}

/** How a join's shuffles are split: parts of each split partition, by partition id.
  *
  * @param tasks
  *   that read them; None when the join reads no shuffle directly
  */
final case class SkewLayout(left: Map[Int, Int], right: Map[Int, Int], tasks: Option[Int]) {

  def isSplit: Boolean = left.nonEmpty || right.nonEmpty

  /** Coalescing changes the number of tasks, not what is split. */
  def splitsAs(other: SkewLayout): Boolean = left == other.left && right == other.right

  /** For a person: `SortMergeJoin, 12 tasks, 3 partitions split`. */
  def text(strategy: String): String = {
    def count(n: Int, what: String) = s"$n $what${if (n == 1) "" else "s"}"
    val split = (left.keySet ++ right.keySet).size
    val splits = if (split == 0) None else Some(s"${count(split, "partition")} split")
    (Seq(strategy) ++ tasks.map(count(_, "task")) ++ splits).mkString(", ")
  }
}

object SkewLayout {

  /** As a plan, executed or not, reads the join's shuffles. */
  def of(join: SparkPlan): SkewLayout = {
    val left = reads(join.children.head)
    val right = reads(join.children.last)
    SkewLayout(
      left.flatMap(_.left.toOption).fold(Map.empty[Int, Int])(parts),
      right.flatMap(_.left.toOption).fold(Map.empty[Int, Int])(parts),
      left.orElse(right).map(_.fold(_.length, identity))
    )
  }

  /** Parts of each split partition, by partition id. */
  def parts(specs: Seq[ShufflePartitionSpec]): Map[Int, Int] =
    specs
      .collect { case p: PartialReducerPartitionSpec => p }
      .groupBy(_.reducerIndex)
      .map { case (partition, specs) => partition -> specs.map(_.startMapIndex).distinct.length }

  /** What reads the shuffle below: its specs, or the number of its partitions when all are read in whole. */
  private def reads(plan: SparkPlan): Option[Either[Seq[ShufflePartitionSpec], Int]] = plan match {
    case read: AQEShuffleReadExec => Some(Left(read.partitionSpecs))
    case s: ShuffleQueryStageExec => Some(Right(s.outputPartitioning.numPartitions))
    case u: UnaryExecNode         => reads(u.child)
    case _                        => None
  }
}

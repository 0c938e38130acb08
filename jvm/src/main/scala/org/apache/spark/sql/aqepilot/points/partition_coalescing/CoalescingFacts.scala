package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  DearRows,
  Fact,
  Facts,
  HistoryFacts,
  PointFacts,
  ShuffleFacts,
  SignatureFacts,
  Tables
}
import org.apache.spark.sql.aqepilot.plans.promises.FinalStage
import org.apache.spark.sql.aqepilot.plans.shuffles.CoalesceGroup
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Statistics}
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.execution.window.WindowExecBase
import org.apache.spark.sql.execution.{GenerateExec, SortExec, SparkPlan}

/** A stage whose shuffles are to be read.
  *
  * @param plan
  *   as Spark's rules left it
  * @param groups
  *   all groups of its shuffles
  */
final private class StageToRead(
    val plan: SparkPlan,
    val groups: Seq[CoalesceGroup],
    executionId: Option[Long]
) {
  lazy val shuffleBytes: Long = groups.map(_.shuffleBytes).sum

  lazy val write: Option[StageWrite] = StageWrite.of(plan, executionId)
}

/** What the facts of `partition_coalescing` are read from. */
final private class GroupToRead(val stage: StageToRead, val group: CoalesceGroup) {

  val links: Seq[LogicalPlan] = group.stages.flatMap(_.logicalLink)

  private lazy val above = GroupToRead.above(stage.plan, group.ids)

  /** Whether an operator of the stage that some of the group's rows pass is such a one. */
  def isBelow(operator: SparkPlan => Boolean): Boolean = above.exists(operator)

  lazy val sizes: ShuffleFacts = group.stages.flatMap(_.mapStats) match {
    case Seq(only) => ShuffleFacts.of(only)
    case several   => ShuffleFacts.of(GroupToRead.sum(several.map(_.bytesByPartitionId)))
  }

  lazy val statistics: Seq[Statistics] = group.stages.map(_.getRuntimeStatistics)

  /** None where one is not known. */
  def rowCount: Option[BigInt] = {
    val rows = statistics.map(_.rowCount)
    if (rows.forall(_.isDefined)) Some(rows.flatten.sum) else None
  }
}

private object GroupToRead {

  /** The operators of a stage that some of these shuffles' rows pass. */
  private def above(plan: SparkPlan, ids: Set[Int]): Seq[SparkPlan] = plan match {
    case s: ShuffleQueryStageExec => if (ids.contains(s.id)) Seq(s) else Nil
    case other                    =>
      val below = other.children.flatMap(above(_, ids))
      if (below.isEmpty) Nil else other +: below
  }

  /** Sizes by partition id, summed; a shuffle that has fewer partitions counts as empty in the rest. */
  private def sum(sizes: Seq[Array[Long]]): Array[Long] = {
    val total = new Array[Long](sizes.map(_.length).max)
    sizes.foreach { bytes =>
      var i = 0
      while (i < bytes.length) {
        total(i) += bytes(i)
        i += 1
      }
    }
    total
  }
}

/** The facts of `partition_coalescing`. */
private object CoalescingFacts {

  private val fact = Fact.of[GroupToRead]

  private def operator(name: String, meaning: String)(is: SparkPlan => Boolean) =
    fact.fixed(name, meaning)(_.isBelow(is))

  private val stage = new Facts[GroupToRead](
    fact.fixed(
      "shuffles",
      "the group's shuffles, numbered as in the plan's text (ShuffleQueryStage 3)"
    )(_.group.stages.map(_.id)),
    fact.fixed("num_shuffles", "shuffles in the group")(_.group.stages.size),
    fact("is_final", "whether the stage gives the query's, or a subquery's, result")(g =>
      FinalStage.is(g.stage.plan)
    ),
    fact.fixed("is_rebalance", "whether the group is a REBALANCE")(_.group.isRebalance),
    operator("has_sort", "whether a sort runs above the group in the stage")(
      _.isInstanceOf[SortExec]
    ),
    operator("has_aggregate", "whether an aggregation does")(_.isInstanceOf[BaseAggregateExec]),
    operator("has_join", "whether a join does")(_.isInstanceOf[BaseJoinExec]),
    operator("has_window", "whether a window function does")(_.isInstanceOf[WindowExecBase]),
    operator("has_generate", "whether an explode or another generator does")(
      _.isInstanceOf[GenerateExec]
    ),
    operator("has_python_udf", "whether Python code does (UDF, mapInPandas, ...)")(
      DearRows.runsPython
    ),
    operator(
      "has_jvm_udf",
      "whether JVM code that is not Spark's does: a Scala, Java or Hive UDF, a function of a library, an " +
        "operation on the objects of a Dataset"
    )(DearRows.runsJvmFunction),
    operator(
      "has_grouped_udf",
      "whether a function does that is called once for each group (applyInPandas, cogroup, mapGroups, UDFs in " +
        "pandas that aggregate)"
    )(DearRows.runsOnGroups),
    operator(
      "has_loop",
      "whether an expression does whose steps for a row do not follow from the row's bytes: sequence, array_repeat, " +
        "a lambda over a constant array or within another lambda"
    )(DearRows.loops),
    fact.fixed(
      "has_exploding_join",
      "whether a Cartesian product or a broadcast nested loop join does: from 4.0 on Spark then " +
        "takes the minimum size for the target"
    )(_.group.hasExplodingJoin),
    fact("is_write", "whether the stage writes a table or files")(_.stage.write.isDefined),
    fact("write_format", "format that it writes, e.g. parquet; null when not known")(
      _.stage.write.flatMap(_.format)
    ),
    fact(
      "requested_partition_bytes",
      "size that the data source that is written to asks for, or a `write_distribution` policy, bytes; null when none does"
    )(_.group.requestedBytes),
    fact.fixed(
      "shuffle_bytes",
      "shuffle bytes of all groups of the stage: Spark shares its minimum number among them"
    )(_.stage.shuffleBytes)
  )

  private val shuffle = new Facts[GroupToRead](
    Seq(
      CommonFacts.tables(fact)(_.links.flatMap(Tables.of).distinct),
      fact.fixed("num_partitions", "partitions of each shuffle")(
        _.group.stages.map(_.shuffle.numPartitions).max
      ),
      fact("num_mappers", "map tasks that wrote the shuffles, all together")(
        _.group.stages.map(_.shuffle.numMappers).sum
      )
    ) ++ CommonFacts.sizes(
      fact,
      "shuffle bytes (compressed) of each partition, summed over the shuffles"
    )(g => Some(g.sizes)) ++ Seq(
      fact.fixed("non_empty_ratio", "share of the partitions that are not empty, 0 to 1")(
        _.sizes.nonEmptyRatio
      ),
      fact("row_count", "rows; null when not known")(_.rowCount),
      fact("size_in_bytes", "rows' size, uncompressed, bytes")(_.statistics.map(_.sizeInBytes).sum),
      SignatureFacts.shuffles(fact)(_.group.stages.map(_.shuffle)),
      HistoryFacts.shuffles(fact, HistoryFacts.OfLargest)(_.group.stages.map(_.shuffle))
    ): _*
  )

  private val spark = new Facts[GroupToRead](
    fact.fixed("num_partitions", "tasks that would read it")(_.group.tasks),
    fact.fixed(
      "is_local_read",
      "whether they would read it where it was written"
    )(_.group.isLocalRead)
  )

  val all: PointFacts[GroupToRead] = new PointFacts(
    fact.group("stage", "the stage that reads the group", stage)(g => g),
    fact.group("shuffle", "the group's shuffles, taken together", shuffle)(g => g),
    fact.group("spark", "what Spark's own rules made of the group", spark)(g => g)
  )
}

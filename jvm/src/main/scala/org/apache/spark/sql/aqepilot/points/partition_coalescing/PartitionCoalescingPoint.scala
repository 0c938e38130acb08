package org.apache.spark.sql.aqepilot.points.partition_coalescing

import org.apache.spark.sql.aqepilot.decision.{
  AnswerField,
  DecisionPoint,
  FateReader,
  Guards,
  Need,
  Verdict
}
import org.apache.spark.sql.aqepilot.facts.FactsRow
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types._

/** How many tasks read the finished shuffles of a stage, and how.
  *
  * Stands beside Spark's `CoalesceShufflePartitions`, `OptimizeShuffleWithLocalRead` and
  * `OptimizeSkewInRebalancePartitions`.
  */
object PartitionCoalescingPoint extends DecisionPoint[CoalescingDecision] {

  override val name: String = "partition_coalescing"

  override val builtIn: String =
    "CoalesceShufflePartitions, OptimizeShuffleWithLocalRead, OptimizeSkewInRebalancePartitions"

  override val summary: String =
    "how many tasks read finished shuffles, from the measured sizes of their partitions"

  override val asked: String =
    "once per stage for each group of finished shuffles that its tasks read together, right before it " +
      "is run; not for shuffles whose number of partitions the query fixes"

  val TargetBytes = "target_bytes"
  val MinPartitionBytes = "min_partition_bytes"
  val MinPartitions = "min_partitions"
  val LocalRead = "local_read"
  val Keep = "keep"

  override val answer: StructType = StructType(
    Seq(
      AnswerField(
        TargetBytes,
        LongType,
        "size that a task should read, shuffle bytes; of a REBALANCE also the size above which a " +
          "partition is split (spark.sql.adaptive.advisoryPartitionSizeInBytes)"
      ),
      AnswerField(
        MinPartitionBytes,
        LongType,
        "smallest size of the target after Spark has lowered it for parallelism, shuffle bytes " +
          "(spark.sql.adaptive.coalescePartitions.minPartitionSize)"
      ),
      AnswerField(
        MinPartitions,
        IntegerType,
        "number of tasks below which the target is lowered; 1 = the target alone rules " +
          "(spark.sql.adaptive.coalescePartitions.minPartitionNum)"
      ),
      AnswerField(
        LocalRead,
        BooleanType,
        "whether shuffles that need no particular partitioning are read where they were written " +
          "(spark.sql.adaptive.localShuffleReader.enabled)"
      ),
      AnswerField(
        Keep,
        BooleanType,
        "true = no coalescing, the shuffles' own partitions; false = coalescing even where the " +
          "session has it off (spark.sql.adaptive.coalescePartitions.enabled)"
      )
    )
  )

  override val answerMeaning: String =
    "the values of Spark's own settings for this group of shuffles"

  override val facts: StructType = CoalescingFacts.all.schema

  override def parse(answer: Any): CoalescingDecision =
    CoalescingDecision.of(answer.asInstanceOf[InternalRow])

  override def toAnswer(decision: CoalescingDecision): Any = decision.row

  override def judge(
      decision: CoalescingDecision,
      facts: FactsRow,
      guards: Guards
  ): Verdict[CoalescingDecision] = CoalescingLegality.verdict(decision, facts, guards)

  override def candidates(facts: FactsRow): Iterator[CoalescingDecision] = {
    val sparks = CoalescingDecision(None, None, None, None, None)
    val cores = facts.long("cluster.default_parallelism").getOrElse(1L)
    val least = for {
      times <- Iterator(1L, 2L, 4L)
      if cores * times <= Int.MaxValue
    } yield sparks.copy(minPartitions = Some((cores * times).toInt))
    val targets = for {
      advisory <- facts.long("conf.advisory_partition_size_in_bytes").iterator
      times <- Iterator(0.25, 4.0, 0.0625)
    } yield sparks.copy(targetBytes = Some((advisory * times).toLong), minPartitions = Some(1))
    val reads = Iterator(true, false).map(local => sparks.copy(localRead = Some(local)))
    Iterator(sparks.copy(keep = Some(true)), sparks.copy(minPartitions = Some(1))) ++
      least ++ targets ++ reads ++ Iterator.single(sparks.copy(keep = Some(false)))
  }

  override val movesRows: Boolean = true

  override def fates: FateReader = CoalescingFates

  override val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.CoalesceShufflePartitions", Some("conf")),
    Need("org.apache.spark.sql.execution.adaptive.OptimizeShuffleWithLocalRead"),
    Need("org.apache.spark.sql.execution.adaptive.OptimizeSkewInRebalancePartitions"),
    Need("org.apache.spark.sql.execution.adaptive.AQEShuffleReadRule"),
    Need("org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec", Some("partitionSpecs")),
    Need("org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec", Some("mapStats")),
    Need("org.apache.spark.MapOutputStatistics", Some("bytesByPartitionId")),
    Need("org.apache.spark.sql.execution.exchange.ValidateRequirements", Some("validate"))
  ) ++ Need.ofRequiredDistribution
}

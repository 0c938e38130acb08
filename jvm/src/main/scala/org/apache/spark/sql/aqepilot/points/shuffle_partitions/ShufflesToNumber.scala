package org.apache.spark.sql.aqepilot.points.shuffle_partitions

import org.apache.spark.sql.aqepilot.facts.{DearRows, Estimates, Tables}
import org.apache.spark.sql.aqepilot.plans.joins.{FaultShapes, JoinShape}
import org.apache.spark.sql.aqepilot.plans.shuffles.{ShuffleGroup, ShuffleGroups}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.command.DataWritingCommandExec
import org.apache.spark.sql.execution.datasources.WriteFilesExec
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, ShuffledJoin}
import org.apache.spark.sql.execution.python.EvalPythonExec
import org.apache.spark.sql.execution.window.WindowExecBase
import org.apache.spark.sql.execution.{
  BaseLimitExec,
  ExpandExec,
  GenerateExec,
  SortExec,
  SparkPlan,
  UnionExec
}
import org.apache.spark.sql.internal.SQLConf

/** What the facts of `shuffle_partitions` are read from: an answer about a group stands until one of them changes.
  *
  * @param distinctCount
  *   of the key, the largest of all shuffles
  * @param sizes
  *   Spark's estimates of what each shuffle carries
  * @param rowCount
  *   of all shuffles
  */
final private case class ShufflesToNumber(
    numShuffles: Int,
    numPartitions: Int,
    isRange: Boolean,
    keys: Seq[String],
    distinctCount: Option[BigInt],
    sizes: Option[Seq[BigInt]],
    rowCount: Option[BigInt],
    inputBytes: Option[BigInt],
    knownBytes: Option[BigInt],
    tables: Seq[String],
    feeds: Seq[String],
    sparkFaults: Seq[String]
)(
    // Of no account for an answer: what past runs measured of them does not change in a query.
    private[shuffle_partitions] val shuffles: Seq[ShuffleExchangeExec]
)

private object ShufflesToNumber {

  def of(group: ShuffleGroup, conf: SQLConf): ShufflesToNumber = {
    val links = group.shuffles.map(ShuffleGroups.link)
    val known = links.flatten
    def ofAll[T](value: LogicalPlan => Option[T]): Option[Seq[T]] = {
      val values = known.map(value)
      if (known.size < links.size || values.exists(_.isEmpty)) None else Some(values.flatten)
    }
    def estimated(bytes: BigInt) = if (bytes < conf.defaultSizeInBytes) Some(bytes) else None
    val measured = group.shuffles.flatMap(_.child.collect {
      case s: QueryStageExec if s.isMaterialized => s.getRuntimeStatistics.sizeInBytes
    })
    ShufflesToNumber(
      numShuffles = group.shuffles.size,
      numPartitions = group.number,
      isRange = group.shuffles.exists(_.outputPartitioning.isInstanceOf[RangePartitioning]),
      keys = keys(group.shuffles.head).map(_.sql),
      distinctCount = distinctCount(group.shuffles),
      sizes = ofAll(p => estimated(Estimates.of(p).sizeInBytes)),
      rowCount = ofAll(Estimates.of(_).rowCount).map(_.sum),
      inputBytes = ofAll(p => estimated(inputBytes(p))).map(_.sum),
      knownBytes = if (measured.isEmpty) None else Some(measured.sum),
      tables = known.flatMap(Tables.of).distinct,
      feeds = feeds(group.readers.head).distinct.sorted,
      sparkFaults = sparkFaults(group, conf)
    )(group.shuffles)
  }

  /** Spark's own run-time rule makes a shuffled hash join where all partitions of a shuffle are small, which their
    * number decides.
    */
  private def sparkFaults(group: ShuffleGroup, conf: SQLConf): Seq[String] =
    if (conf.getConf(SQLConf.ADAPTIVE_MAX_SHUFFLE_HASH_JOIN_LOCAL_MAP_THRESHOLD) <= 0) Nil
    else
      joined(group.readers.head)
        .flatMap(_.logicalLink).distinct
        .collect { case j: Join => j }
        .collect { case ExtractEquiJoinKeys(joinType, _, keys, beside, _, left, right, _) =>
          JoinShape(joinType, keys, beside, Seq(left, right))
        }
        .flatMap(FaultShapes.met(_)).distinct

  private def joined(plan: SparkPlan): Seq[ShuffledJoin] = plan match {
    case _: Exchange     => Nil
    case j: ShuffledJoin => j +: j.children.flatMap(joined)
    case p               => p.children.flatMap(joined)
  }

  private def keys(shuffle: ShuffleExchangeExec): Seq[Expression] =
    shuffle.outputPartitioning match {
      case e: Expression => e.children
      case _             => Nil
    }

  private def distinctCount(shuffles: Seq[ShuffleExchangeExec]): Option[BigInt] = {
    val counts = for {
      shuffle <- shuffles
      key <- keys(shuffle) match {
        case Seq(a: Attribute) => Some(a)
        case _                 => None
      }
      plan <- ShuffleGroups.link(shuffle)
      column <- Estimates.of(plan).attributeStats.get(key)
      count <- column.distinctCount
    } yield count
    if (counts.isEmpty) None else Some(counts.max)
  }

  /** The sum of the estimates of the largest parts of a plan that join nothing: where there are no statistics,
    * Spark takes the product of its sides for a join's size, and for that of a stage which runs it.
    */
  private[aqepilot] def inputBytes(plan: LogicalPlan): BigInt = plan match {
    case p if !joins(p)          => Estimates.of(p).sizeInBytes
    case LogicalQueryStage(p, _) => inputBytes(p)
    case p                       => p.children.map(inputBytes).sum
  }

  private def joins(plan: LogicalPlan): Boolean = plan.exists {
    case LogicalQueryStage(plan, physical) =>
      val isFinished = physical.collectFirst { case s: QueryStageExec => s.isMaterialized }
      !isFinished.contains(true) && joins(plan)
    case p => p.children.size > 1
  }

  private def feeds(plan: SparkPlan): Seq[String] = plan match {
    case _: Exchange => Nil
    case p           => words(p) ++ p.children.flatMap(feeds)
  }

  private def words(plan: SparkPlan): Seq[String] =
    word(plan).toSeq ++ (if (DearRows.runsOnGroups(plan)) Seq("GROUPED_UDF") else Nil)

  private def word(plan: SparkPlan): Option[String] = plan match {
    case _: BaseAggregateExec                          => Some("AGGREGATE")
    case _: BaseJoinExec                               => Some("JOIN")
    case _: WindowExecBase                             => Some("WINDOW")
    case s: SortExec if s.global                       => Some("SORT")
    case _: GenerateExec                               => Some("GENERATE")
    case _: ExpandExec                                 => Some("EXPAND")
    case _: EvalPythonExec                             => Some("PYTHON")
    case _: BaseLimitExec                              => Some("LIMIT")
    case _: UnionExec                                  => Some("UNION")
    case _: WriteFilesExec | _: DataWritingCommandExec => Some("WRITE")
    case p if p.nodeName.contains("Pandas")            => Some("PYTHON")
    case _                                             => None
  }
}

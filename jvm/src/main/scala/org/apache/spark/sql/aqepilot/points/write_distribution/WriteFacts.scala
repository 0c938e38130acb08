package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.facts.{
  CommonFacts,
  Estimates,
  JoinSide,
  LazyRow,
  QueryFacts,
  Tables
}
import org.apache.spark.sql.aqepilot.spark.Sessions
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{
  BooleanType,
  DateType,
  DecimalType,
  IntegralType,
  StringType,
  TimestampNTZType
}

/** The facts of `write_distribution` on one command, in the order of its schema. */
final private[write_distribution] class WriteFacts(
    write: WriteTarget,
    session: Sessions.Classic,
    executionId: Option[Long]
) {

  private val sc = session.sparkContext
  private val conf = session.sessionState.conf
  private val query = write.query
  private lazy val written = new WrittenQuery(
    query,
    conf,
    conf.getConf(SQLConf.LEAF_NODE_DEFAULT_PARALLELISM).getOrElse(sc.defaultParallelism)
  )

  private lazy val statistics = Estimates.of(query)

  private lazy val constant: AttributeSet = AttributeSet(query match {
    case Project(list, _) => list.collect { case a: Alias if a.child.foldable => a.toAttribute }
    case _                => Nil
  })

  def row: LazyRow = LazyRow(
    () => QueryFacts.query(sc, executionId),
    () => CommonFacts.conf(conf),
    () => QueryFacts.cluster(sc),
    () => writeRow,
    () => inputRow
  )

  private def writeRow = LazyRow(
    () => QueryFacts.string(write.command.nodeName),
    () => string(write.format),
    () => string(write.table),
    () => string(write.mode),
    () => QueryFacts.strings(write.columns.map(_._1)),
    () => QueryFacts.strings(write.partitionColumns),
    () => names(write.dynamic),
    () => names(write.dynamic.filter(constant.contains)),
    () => names(write.dynamic.filterNot(WriteFacts.isExact)),
    () => QueryFacts.strings(write.transforms),
    () => write.staticPartitions.map(QueryFacts.strings).orNull,
    () => write.overwritesDynamically,
    () => QueryFacts.strings(write.buckets.toSeq.flatMap(_.bucketColumnNames)),
    () => write.buckets.map(_.numBuckets).getOrElse(null),
    () => string(write.distribution),
    () => QueryFacts.strings(write.requiredOrdering),
    () => write.maxConcurrentWriters.getOrElse(null),
    () => write.fansOut,
    () => conf.adaptiveExecutionEnabled,
    () => query.isStreaming || sc.getLocalProperty(WriteFacts.StreamingQuery) != null
  )

  private def inputRow = LazyRow(
    () => QueryFacts.strings(Tables.of(query)),
    () => JoinSide.toLong(statistics.sizeInBytes),
    () => statistics.rowCount.map(JoinSide.toLong).getOrElse(null),
    () => JoinSide.rowBytes(query),
    () =>
      QueryFacts.string(Estimates.from(query, conf)),
    () => distinctCount.map(JoinSide.toLong).getOrElse(null),
    () => written.tasks.getOrElse(null),
    () => string(written.lastShuffle.map(_.word)),
    () => names(written.isShuffledBy(_)),
    () => string(written.usersDistribution),
    () => written.isLimited,
    () => query.deterministic,
    () => names(written.distributes(_)),
    () => written.spreadsEvenly
  )

  private def string(value: Option[String]): Any = value.map(QueryFacts.string).orNull

  private def names(columns: Seq[Attribute]) = QueryFacts.strings(columns.map(write.nameOf))

  /** Of those written columns of which something holds. */
  private def names(holds: Attribute => Boolean) =
    QueryFacts.strings(write.columns.collect { case (name, a) if holds(a) => name })

  private def distinctCount: Option[BigInt] = write.dynamic match {
    case Seq(one) => statistics.attributeStats.get(one).flatMap(_.distinctCount)
    case _        => None
  }
}

private object WriteFacts {

  /** On the threads of a streaming query, `foreachBatch` included. */
  val StreamingQuery = "sql.streaming.queryId"

  /** Whether two values are the same to Spark's sort if, and only if, they are as names of directories. */
  def isExact(column: Attribute): Boolean = column.dataType match {
    case StringType | BooleanType | DateType | TimestampNTZType => true
    case _: IntegralType | _: DecimalType                       => true
    case _                                                      => false
  }
}

package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.catalog.BucketSpec
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{
  AppendData,
  LogicalPlan,
  OverwriteByExpression,
  OverwritePartitionsDynamic,
  Sort,
  V2WriteCommand
}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.connector.distributions.{
  ClusteredDistribution,
  OrderedDistribution,
  UnspecifiedDistribution
}
import org.apache.spark.sql.connector.expressions.{Expression, Transform}
import org.apache.spark.sql.connector.write.{RequiresDistributionAndOrdering, V1Write, Write}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

/** A write to a table of the DataSource V2 interface, after `V2Writes` has done what the table requires.
  *
  * @param requires
  *   the table's write. One that requires nothing may still count on rows as the query's author has them, so only
  *   those that say what they require are decided on.
  * @param query
  *   what is written, as it was before
  */
final private[write_distribution] class V2Target private (
    val command: V2WriteCommand,
    options: Map[String, String],
    relation: DataSourceV2Relation,
    requires: RequiresDistributionAndOrdering,
    val query: LogicalPlan,
    conf: SQLConf
) extends WriteTarget {

  override lazy val columns: Seq[(String, Attribute)] = query.output.map(a => a.name -> a)

  override def format: Option[String] =
    Option(relation.table.properties.get(TableCatalog.PROP_PROVIDER))

  override def table: Option[String] = Option(relation.name).map(_.stripPrefix("spark_catalog."))

  override def mode: Option[String] = Some(WriteTarget.word(command match {
    case _: AppendData => SaveMode.Append
    case _             => SaveMode.Overwrite
  }))

  override def overwritesDynamically: Boolean = command.isInstanceOf[OverwritePartitionsDynamic]

  private lazy val partitioning: Seq[Transform] = relation.table.partitioning.toSeq

  private lazy val (identities, functions) =
    partitioning.partition(t => V2Target.column(t).isDefined)

  override def partitionColumns: Seq[String] = identities.flatMap(V2Target.column)

  override lazy val dynamic: Seq[Attribute] =
    partitionColumns.flatMap(name => query.output.find(a => conf.resolver(a.name, name)))

  override def transforms: Seq[String] = functions.map(_.describe)

  override def staticPartitions: Option[Seq[String]] = None

  override def buckets: Option[BucketSpec] = None

  override def maxConcurrentWriters: Option[Int] = None

  override def distribution: Option[String] = requires.requiredDistribution match {
    case _: ClusteredDistribution                               => Some("CLUSTERED")
    case _: OrderedDistribution                                 => Some("ORDERED")
    case _: UnspecifiedDistribution if V2Target.isAsIs(options) => Some("AS_IS")
    case _: UnspecifiedDistribution                             => None
    case other => Some(other.getClass.getSimpleName)
  }

  private lazy val ordering: Seq[String] =
    requires.requiredOrdering.toSeq.map(o => V2Target.text(o.expression))

  private lazy val beside: Seq[String] = ordering.diff(partitioning.map(V2Target.text))

  /** Spark leaves its sort out where the rows are sorted so already: a rebalance would undo that. */
  override lazy val sort: Option[Sort] = command.query match {
    case s: Sort if ordering.nonEmpty && !s.global && s.order.size == ordering.size => Some(s)
    case _                                                                          => None
  }

  override def fansOut: Boolean = partitioning.nonEmpty && ordering.isEmpty

  override def requiredOrdering: Seq[String] =
    if (beside.isEmpty && sort.isEmpty) ordering else beside
}

private[write_distribution] object V2Target {

  /** On a command, before its write is made: its query. */
  private val before = TreeNodeTag[LogicalPlan]("aqepilot.written")

  /** Keeps in mind what a command writes. It is decided on later, and what Spark pushes into a scan until then, as a
    * LIMIT, is part of the facts.
    */
  def keep(plan: V2WriteCommand): Unit = made(plan).foreach { case (write, _) =>
    if (write.isEmpty) plan.setTagValue(before, plan.query)
  }

  /** None where nobody may decide: the table does not say what it requires. */
  def decidable(command: V2WriteCommand, conf: SQLConf): Option[V2Target] = for {
    (write, options) <- made(command)
    requires <- write.collect {
      case r: RequiresDistributionAndOrdering if !r.isInstanceOf[V1Write] => r
    }
    relation <- Some(command.table).collect { case r: DataSourceV2Relation => r }
    query <- command.getTagValue(before)
    if query.output.size == command.query.output.size
  } yield new V2Target(command, options, relation, requires, query, conf)

  /** The distribution of rows that are merged, updated or deleted is the table's own. */
  private def made(plan: V2WriteCommand): Option[(Option[Write], Map[String, String])] =
    plan match {
      case w: AppendData                 => Some((w.write, w.writeOptions))
      case w: OverwriteByExpression      => Some((w.write, w.writeOptions))
      case w: OverwritePartitionsDynamic => Some((w.write, w.writeOptions))
      case _                             => None
    }

  /** Iceberg's option by which a write's author, or Iceberg itself when it rewrites files, has the rows as they are. Its
    * writer may then count on it that rows of a partition are together.
    */
  private def isAsIs(options: Map[String, String]): Boolean = options.exists { case (key, value) =>
    key.equalsIgnoreCase("use-table-distribution-and-ordering") && value.equalsIgnoreCase("false")
  }

  /** The column of a table that it is partitioned by. */
  private def column(transform: Transform): Option[String] =
    if (transform.name != "identity") None
    else
      transform.references match {
        case Array(one) if one.fieldNames.length == 1 => Some(one.fieldNames.head)
        case _                                        => None
      }

  /** A column and its identity are the same. */
  private def text(expression: Expression): String = expression match {
    case t: Transform if t.name == "identity" => t.references.map(_.describe).mkString
    case other                                => other.describe
  }
}

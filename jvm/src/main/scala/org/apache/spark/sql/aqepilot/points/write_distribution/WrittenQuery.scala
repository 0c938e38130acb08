package org.apache.spark.sql.aqepilot.points.write_distribution

import org.apache.spark.sql.aqepilot.plans.promises.Repeatable
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeMap,
  AttributeSet,
  Exists,
  Expression,
  InSubquery,
  NamedExpression,
  RowOrdering
}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Generate,
  GlobalLimit,
  Join,
  LeafNode,
  LocalLimit,
  LogicalPlan,
  Offset,
  Project,
  Range,
  RebalancePartitions,
  RepartitionByExpression,
  RepartitionOperation,
  Sample,
  Sort,
  Tail,
  UnaryNode,
  Union,
  Window
}
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  LogicalRelation,
  PartitioningAwareFileIndex
}
import org.apache.spark.sql.internal.SQLConf

/** How the rows of a query, optimised but for its scans, come to the tasks that write them.
  *
  * @param parallelism
  *   tasks of a source that has no number of its own
  */
final private class WrittenQuery(query: LogicalPlan, conf: SQLConf, parallelism: => Int) {
  import WrittenQuery._

  /** The distribution or order that the query's author asked for, and that the write keeps; None where there is none. */
  lazy val usersDistribution: Option[String] = UsersDistribution.in(query)

  /** Subqueries count as far as they give rows: those of IN and EXISTS, which become joins. */
  lazy val isLimited: Boolean = isLimited(query)

  private def isLimited(plan: LogicalPlan): Boolean = plan.exists {
    case _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail | _: Sample => true
    case node => node.expressions.exists(_.exists {
        case e: Exists      => isLimited(e.plan)
        case in: InSubquery => isLimited(in.query.plan)
        case _              => false
      })
  }

  /** Columns whose values may differ when a task runs again after a shuffle, as its rows come in another order then. */
  private lazy val unstable: AttributeSet = {
    var columns = AttributeSet.empty
    def isUnstable(e: Expression): Boolean =
      e.references.exists(columns.contains) || e.exists(Repeatable.hangsOnOrder)
    query.foreachUp {
      case u: Union =>
        columns ++= AttributeSet(u.output.zipWithIndex.collect {
          case (a, i) if u.children.exists(c => columns.contains(c.output(i))) => a
        })
      case g: Generate if isUnstable(g.generator) => columns ++= AttributeSet(g.generatorOutput)
      case node                                   =>
        columns ++= AttributeSet(node.expressions.collect {
          case a: NamedExpression if isUnstable(a) => a.toAttribute
        })
    }
    columns
  }

  /** Whether rows can be distributed by a column. */
  def distributes(column: Attribute): Boolean =
    RowOrdering.isOrderable(column.dataType) && !unstable.contains(column)

  /** Whether rows can be distributed without columns: Spark then sorts by all that is in a row. */
  def spreadsEvenly: Boolean =
    conf.sortBeforeRepartition && !query.output.exists(unstable.contains)

  /** The topmost operator that shuffles, or may. */
  lazy val lastShuffle: Option[LastShuffle] = last(query, query.output.map(a => a -> a))

  /** Whether the last shuffle distributes by a column. */
  def isShuffledBy(column: Attribute): Boolean = lastShuffle.exists { s =>
    s.columns.exists { case (top, now) =>
      top.exprId == column.exprId && s.by.exists(_.semanticEquals(now))
    }
  }

  /** @param columns
    *   the query's columns, and what they are further down
    */
  private def last(plan: LogicalPlan, columns: Columns): Option[LastShuffle] = {
    def shuffle(word: String, by: Seq[Expression]) = Some(LastShuffle(word, by, columns))
    plan match {
      case Project(list, child) => last(child, through(list, columns))
      case a: Aggregate         =>
        val below = through(a.aggregateExpressions, columns)
        Some(LastShuffle("AGGREGATE", a.groupingExpressions, below))
      case j: Join =>
        shuffle(
          "JOIN",
          j match {
            case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => left ++ right
            case _                                                  => Nil
          }
        )
      case w: Window                            => shuffle("WINDOW", w.partitionSpec)
      case s: Sort if s.global                  => shuffle("SORT", s.order.map(_.child))
      case r: RepartitionByExpression           => shuffle("REPARTITION", r.partitionExpressions)
      case r: RebalancePartitions               => shuffle("REPARTITION", r.partitionExpressions)
      case _: RepartitionOperation              => shuffle("REPARTITION", Nil)
      case _: GlobalLimit | _: Offset | _: Tail => shuffle("LIMIT", Nil)
      case u: UnaryNode                         => last(u.child, columns)
      case _                                    => None
    }
  }

  private def through(list: Seq[NamedExpression], columns: Columns): Columns = {
    val aliases = AttributeMap(list.collect { case a: Alias => a.toAttribute -> a.child })
    columns.map { case (top, now) =>
      top -> now.transform { case a: Attribute => aliases.getOrElse(a, a) }
    }
  }

  /** Tasks that read the sources of a query without a shuffle, about as Spark makes them. */
  lazy val tasks: Option[Int] = tasks(query)

  private def tasks(plan: LogicalPlan): Option[Int] = plan match {
    case u: Union =>
      val each = u.children.map(tasks)
      if (each.forall(_.isDefined)) Some(each.flatten.sum) else None
    case r: Range           => Some(r.numSlices.getOrElse(parallelism))
    case r: LogicalRelation => r.relation match {
        case HadoopFsRelation(files: PartitioningAwareFileIndex, _, _, _, _, _) =>
          Some(scans(files))
        case _ => None
      }
    case _: LeafNode                                        => None
    case _: Aggregate | _: Window | _: RepartitionOperation => None
    case _: GlobalLimit | _: Offset | _: Tail               => None
    case s: Sort if s.global                                => None
    case u: UnaryNode                                       => tasks(u.child)
    case _                                                  => None
  }

  /** Source: `FilePartition.maxSplitBytes`. */
  private def scans(files: PartitioningAwareFileIndex): Int = {
    val (openCost, count) = (conf.filesOpenCostInBytes, files.allFiles().size)
    val bytes = files.sizeInBytes + count * openCost
    val perTask = bytes / conf.filesMinPartitionNum.getOrElse(parallelism)
    val split = math.min(conf.filesMaxPartitionBytes, math.max(openCost, perTask))
    math.max(1L, (bytes + split - 1) / split).toInt
  }
}

private object WrittenQuery {

  /** Columns of a query, each with the expression that it is at a node further down. */
  type Columns = Seq[(Attribute, Expression)]

  /** @param by
    *   what it distributes by
    * @param columns
    *   the query's columns as they are there
    */
  final case class LastShuffle(word: String, by: Seq[Expression], columns: Columns)
}

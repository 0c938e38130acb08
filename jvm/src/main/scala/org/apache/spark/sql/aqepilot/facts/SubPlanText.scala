package org.apache.spark.sql.aqepilot.facts

import java.util.Locale

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, StaticInvoke}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, LogicalQueryStage => Stage}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, FileScan}

/** A column of a sub-plan.
  *
  * @param name
  *   a source's and the column's, or the hash of the expression that makes it
  * @param isPartition
  *   whether its source is partitioned by it
  */
final private case class NamedColumn(name: String, isPartition: Boolean = false)

/** A sub-plan as text, and what its columns are called in the text of what is above it. */
final private case class SubPlan(text: String, columns: Map[ExprId, NamedColumn])

/** Writes sub-plans of optimised plans as text that does not depend on what policies and AQE may change.
  *
  *   - A chain of inner joins and filters is the set of its relations, each with its own conditions, and the set of
  *     conditions among them. What equalities make equal is one set, as Spark adds equalities that follow from others.
  *   - A column is named by where it is made. In a chain its relation is named with it, by the hash of what the relation is
  *     and, among relations that are the same, of the conditions that it is in.
  *   - What changes no row is left out: projections, sorts, repartitions, hints. So is what only saves work: dynamic
  *     pruning, runtime filters, and `IS NOT NULL`, which Spark adds where a join drops nulls.
  *
  * @param keepsLiterals
  *   but for those of conditions whose columns are all dates, timestamps or partition columns
  */
final private class SubPlanText(keepsLiterals: Boolean) {
  import SubPlanText._

  private val known = new WeakNodes[LogicalPlan, SubPlan]

  def of(plan: LogicalPlan): String = written(plan).text

  def ofSet(relations: Seq[LogicalPlan], conditions: Seq[Expression]): String = {
    val parts = new ChainParts
    relations.foreach(parts.add)
    parts.conditions ++= conditions
    chain(parts, Nil).text
  }

  /** What tells the relations of an inner join apart. */
  def within(relations: Seq[LogicalPlan], conditions: Seq[Expression]): Seq[String] = {
    val parts = new ChainParts
    parts.relations ++= relations
    parts.conditions ++= conditions
    new Chain(parts).colours
  }

  def partial(aggregate: Aggregate): String = s"partial ${of(aggregate)}"

  def shuffled(plan: LogicalPlan, keys: Seq[Expression]): String =
    s"shuffle by ${set(keyTexts(written(plan), keys))} of ${of(plan)}"

  /** Its keys are its grouping expressions, under names that the physical plan makes. */
  def partialShuffled(aggregate: Aggregate, keys: Seq[Expression]): String =
    s"shuffle by ${keys.size} of ${partial(aggregate)}"

  private def keyTexts(plan: SubPlan, keys: Seq[Expression]) = {
    val text = new Expressions(plan.columns.get(_).map(_.name), keepsLiterals)
    keys.map(text(_))
  }

  private def written(plan: LogicalPlan): SubPlan = known(plan)(write(plan))

  private def write(plan: LogicalPlan): SubPlan = plan match {
    case Stage(inner, _)                           => written(inner)
    case Transparent(child)                        => written(child)
    case Join(_, _, _: InnerLike, _, _)            => chainOf(plan)
    case _: Filter | _: Project                    => chainOf(plan)
    case Join(left, right, joinType, condition, _) => join(left, right, joinType, condition)
    case aggregate: Aggregate                      =>
      val child = written(aggregate.child)
      val text = textsOver(child)
      val grouping = aggregate.groupingExpressions.map(text(_))
      SubPlan(
        s"aggregate by ${set(grouping)} of ${nested(child)}",
        aggregate.aggregateExpressions.map(e => e.exprId -> column(e, child, text)).toMap
      )
    case union: Union =>
      val children = union.children.map(written)
      val names = union.children.zip(children).map { case (p, c) =>
        p.output.map(a => c.columns.get(a.exprId).fold("")(_.name))
      }
      val columns = union.output.zipWithIndex.map { case (a, i) =>
        a.exprId -> NamedColumn(hashed(s"union ${set(names.map(_.lift(i).getOrElse("")))}"))
      }
      SubPlan(s"union of ${children.map(nested).sorted.mkString("[", "; ", "]")}", columns.toMap)
    case leaf if leaf.children.isEmpty => source(leaf)
    case other                         =>
      val children = other.children.map(written)
      val columns = children.flatMap(_.columns).toMap
      val text = new Expressions(columns.get(_).map(_.name), keepsLiterals)
      val node =
        s"${other.nodeName} ${other.expressions.map(text(_)).mkString("(", ", ", ")")} of " +
          children.map(nested).mkString("[", "; ", "]")
      val made = other.output.zipWithIndex.collect {
        case (a, i) if !columns.contains(a.exprId) =>
          a.exprId -> NamedColumn(hashed(s"$i of $node"))
      }
      SubPlan(node, columns ++ made)
  }

  private def textsOver(child: SubPlan) =
    new Expressions(child.columns.get(_).map(_.name), keepsLiterals)

  private def column(e: NamedExpression, child: SubPlan, text: Expressions): NamedColumn =
    bare(e) match {
      case a: Attribute => child.columns.getOrElse(a.exprId, NamedColumn(text(a)))
      case other        => NamedColumn(hashed(text(other)))
    }

  /** Sides are in order, a right outer join being a left one from the other side. */
  private def join(
      left: LogicalPlan,
      right: LogicalPlan,
      joinType: JoinType,
      condition: Option[Expression]
  ): SubPlan = joinType match {
    case RightOuter => join(right, left, LeftOuter, condition)
    case _          =>
      val (l, r) = (written(left), written(right))
      val inLeft = l.columns.get(_: ExprId).map(c => s"left ${c.name}")
      val inRight = r.columns.get(_: ExprId).map(c => s"right ${c.name}")
      val keeps = (c: Expression) =>
        keepsLiterals && !isOfDays(c, id => l.columns.get(id).orElse(r.columns.get(id)))
      val on = conjuncts(condition.toSeq).map { c =>
        new Expressions(id => inLeft(id).orElse(inRight(id)), keeps(c))(c)
      }
      val word = joinType match {
        case ExistenceJoin(_) => "existence"
        case other            => other.sql.toLowerCase(Locale.ROOT)
      }
      val text = s"$word join on ${set(on)} of ${nested(l)} with ${nested(r)}"
      val taken = l.columns.values.map(_.name).toSet
      val others = r.columns.map { case (id, c) =>
        id -> (if (taken(c.name)) c.copy(name = s"right ${c.name}") else c)
      }
      val exists = joinType match {
        case ExistenceJoin(e) => Map(e.exprId -> NamedColumn(hashed(s"exists $text")))
        case _                => Map.empty[ExprId, NamedColumn]
      }
      SubPlan(text, others ++ l.columns ++ exists)
  }

  private def chainOf(plan: LogicalPlan): SubPlan = {
    val parts = new ChainParts
    parts.add(plan)
    chain(parts, plan.output)
  }

  /** @param output
    *   the columns that are named above
    */
  private def chain(parts: ChainParts, output: Seq[Attribute]): SubPlan = {
    val all = new Chain(parts)
    import all._
    if (relations.size == 1) {
      val names = textNames(output, parts, plain, (_, c) => c.name)
      SubPlan(relations.head.text + own.get(0).fold("")(" where " + _), names)
    } else {
      val coloured = (i: Int, c: NamedColumn) => s"${colours(i)}.${c.name}"
      val names = (id: ExprId) => plain(id).map(coloured(owner(id), _))
      SubPlan(
        s"join of ${texts.sorted.mkString("[", "; ", "]")} on ${set(items(names))}",
        textNames(output, parts, plain, (id, c) => coloured(owner(id), c))
      )
    }
  }

  /** The relations of a chain, and what joins them. */
  final private class Chain(parts: ChainParts) {

    val relations: IndexedSeq[SubPlan] = parts.relations.map(written).toIndexedSeq

    val owner: mutable.HashMap[ExprId, Int] = mutable.HashMap.empty
    for ((relation, i) <- relations.zipWithIndex; id <- relation.columns.keys) owner.put(id, i)

    private val owners = new Owners(parts.made, owner.get(_))
    private val (within, among) =
      conjuncts(parts.conditions.toSeq).map(c => c -> owners(c)).partition(_._2.size == 1)

    def plain(id: ExprId): Option[NamedColumn] =
      owner.get(id).flatMap(relations(_).columns.get(id))

    private def text(c: Expression, names: ExprId => Option[String]) =
      new Expressions(
        names,
        keepsLiterals && !isOfDays(c, plain, parts.made),
        parts.made
      )(c)

    /** Conditions on one relation alone. */
    val own: Map[Int, String] = within.groupBy(_._2.head).map { case (i, all) =>
      i -> set(all.map { case (c, _) => text(c, plain(_).map(_.name)) })
    }

    val texts: IndexedSeq[String] =
      relations.indices.map(i => nested(relations(i)) + own.get(i).fold("")(" where " + _))

    private lazy val joined = {
      val numbered = (id: ExprId) => plain(id).map(c => s"${owner(id)}.${c.name}")
      equalities(among.map(_._1), text(_, numbered))
    }

    def items(names: ExprId => Option[String]): Seq[String] =
      joined.map(_.map(text(_, names))).map {
        case Seq(one) => one
        case equal    => s"equal${set(equal)}"
      }

    /** What tells the relations apart. */
    lazy val colours: IndexedSeq[String] = {
      var colours = texts.map(hashed)
      var round = 0
      while (round < MaxRounds && colours.distinct.size < colours.size) {
        val before = colours
        val touched = joined.map(_.flatMap(owners(_)).toSet)
        colours = before.indices.map { i =>
          val names = (id: ExprId) =>
            plain(id).map(c => s"${if (owner(id) == i) "this" else before(owner(id))}.${c.name}")
          val around = items(names).zip(touched).collect { case (item, all) if all(i) => item }
          hashed(s"${before(i)} in ${set(around)}")
        }
        round += 1
      }
      colours
    }
  }

  private def textNames(
      output: Seq[Attribute],
      parts: ChainParts,
      plain: ExprId => Option[NamedColumn],
      name: (ExprId, NamedColumn) => String
  ): Map[ExprId, NamedColumn] = {
    val text = new Expressions(id => plain(id).map(name(id, _)), keepsLiterals, parts.made)
    output.map { a =>
      a.exprId -> (source(a, parts.made) match {
        case column: Attribute => plain(column.exprId)
            .fold(NamedColumn(text(column)))(c => c.copy(name = name(column.exprId, c)))
        case other => NamedColumn(hashed(text(other)))
      })
    }.toMap
  }

  /** What a column is within the projections of a chain. */
  private def source(a: Attribute, made: ExprId => Option[Expression]): Expression =
    made(a.exprId).map(bare) match {
      case Some(other: Attribute) if other.exprId != a.exprId => source(other, made)
      case Some(other)                                        => other
      case None                                               => a
    }

  /** What is equal by these conditions, each set once, and each other condition by itself. */
  private def equalities(
      conditions: Seq[Expression],
      text: Expression => String
  ): Seq[Seq[Expression]] = {
    val (equal, others) = conditions.partition {
      case EqualTo(l, r) => l.references.nonEmpty && r.references.nonEmpty
      case _             => false
    }
    val sets = mutable.ArrayBuffer.empty[mutable.LinkedHashMap[String, Expression]]
    equal.foreach { c =>
      val sides = c.children.map(e => text(e) -> e)
      val (touched, rest) = sets.partition(s => sides.exists(e => s.contains(e._1)))
      val merged = mutable.LinkedHashMap.empty[String, Expression]
      touched.foreach(merged ++= _)
      sides.foreach { case (t, e) => merged.getOrElseUpdate(t, e) }
      sets.clear()
      sets ++= rest += merged
    }
    sets.map(_.values.toSeq).toSeq ++ others.map(Seq(_))
  }

  private def source(leaf: LogicalPlan): SubPlan = {
    val name = leaf match {
      case cached: InMemoryRelation       => s"cached ${cachedPlan(cached).fold("")(of)}"
      case scan: DataSourceV2ScanRelation =>
        val table = SourceName.of(scan.relation).getOrElse(scan.nodeName)
        scan.scan match {
          case _: FileScan => table
          case other       => s"$table ${pushed(other.description)}"
        }
      case range: Range =>
        s"Range${if (keepsLiterals) s" ${range.start} ${range.end} ${range.step}" else ""}"
      case rows: LocalRelation =>
        s"LocalRelation${if (keepsLiterals) s" ${rows.data.size}" else ""}"
      case rdd: LogicalRDD => s"LogicalRDD ${rdd.schema.catalogString}"
      case other           => SourceName.of(other).getOrElse(other.nodeName)
    }
    val partitions = SourceName.partitionColumns(leaf).map(_.toLowerCase(Locale.ROOT)).toSet
    val columns = leaf.output.map { a =>
      val column = a.name.toLowerCase(Locale.ROOT)
      a.exprId -> NamedColumn(s"${nested(name)}.$column", partitions(column))
    }
    SubPlan(name, columns.toMap)
  }

  private def cachedPlan(cached: InMemoryRelation) = cached.cacheBuilder.cachedPlan match {
    case adaptive: AdaptiveSparkPlanExec => adaptive.inputPlan.logicalLink
    case other                           => other.logicalLink
  }

  /** What a source has of the query, which the plan does not have any more. */
  private def pushed(description: String): String = {
    val undated = SourceName.path(description)
    if (keepsLiterals) undated else undated.replaceAll("'[^']*'|\\d+", "?")
  }

  /** Whether a condition's columns, of which it has some, are all of days. */
  private def isOfDays(
      condition: Expression,
      column: ExprId => Option[NamedColumn],
      made: ExprId => Option[Expression] = _ => None
  ): Boolean = {
    def isDay(a: Attribute): Boolean =
      isTime(a.dataType) || column(a.exprId).exists(_.isPartition) ||
        made(a.exprId).exists(e => e.references.nonEmpty && e.references.forall(isDay))
    condition.references.nonEmpty && condition.references.forall(isDay)
  }

  /** Writes expressions over the columns of a sub-plan.
    *
    * @param names
    *   of its columns
    * @param keeps
    *   whether literals are kept
    * @param made
    *   what projections within the sub-plan make
    */
  final private class Expressions(
      names: ExprId => Option[String],
      keeps: Boolean,
      made: ExprId => Option[Expression] = _ => None
  ) extends ExpressionText {

    def apply(e: Expression): String = expr(e)

    override protected def name(e: NamedExpression): String = e match {
      // The functions of DataFrames number the variables of a driver.
      case variable: NamedLambdaVariable => variable.name.replaceAll("_\\d+$", "")
      case _                             =>
        names(e.exprId).orElse(made(e.exprId).map(m => expr(bare(m)))).getOrElse(
          s"?.${e.name.toLowerCase(Locale.ROOT)}"
        )
    }

    override protected def subquery(plan: LogicalPlan): String = nested(of(plan))

    override protected def literal(l: Literal): String = if (keeps) l.toString else "?"

    override protected def aliased(alias: Alias): String = expr(alias.child)

    override protected def expr(e: Expression): String = e match {
      case EqualTo(l, r)            => s"equal${set(Seq(expr(l), expr(r)))}"
      case EqualNullSafe(l, r)      => s"equalnullsafe${set(Seq(expr(l), expr(r)))}"
      case GreaterThan(l, r)        => s"lessthan(${expr(r)}, ${expr(l)})"
      case GreaterThanOrEqual(l, r) => s"lessthanorequal(${expr(r)}, ${expr(l)})"
      case _: And                   => s"and${set(split[And](e).map(expr))}"
      case _: Or                    => s"or${set(split[Or](e).map(expr))}"
      case in: In                   => listed(in.value, in.list.map(expr))
      case InSet(value, list)       =>
        listed(value, list.toSeq.map(v => expr(Literal(v, value.dataType))))
      case call: StaticInvoke =>
        s"${call.staticObject.getSimpleName}.${call.functionName}(${exprs(call.arguments)})"
      case call: Invoke =>
        s"${expr(call.targetObject)}.${call.functionName}(${exprs(call.arguments)})"
      case other => super.expr(other)
    }

    private def listed(value: Expression, list: Seq[String]) = s"${expr(value)} in ${set(list)}"

    private def split[T](e: Expression)(implicit kind: scala.reflect.ClassTag[T]): Seq[Expression] =
      if (kind.runtimeClass.isInstance(e)) e.children.flatMap(split[T]) else Seq(e)
  }
}

private object SubPlanText {

  val Same = new SubPlanText(keepsLiterals = true)
  val Shape = new SubPlanText(keepsLiterals = false)

  private val MaxNested = 2000

  /** So many conditions away from each other may relations be that are the same but for what those join. */
  private val MaxRounds = 3

  /** What has its child's rows. */
  private object Transparent {
    def unapply(plan: LogicalPlan): Option[LogicalPlan] = plan match {
      case p: SubqueryAlias        => Some(p.child)
      case p: View                 => Some(p.child)
      case p: Sort                 => Some(p.child)
      case p: RepartitionOperation => Some(p.child)
      case p: RebalancePartitions  => Some(p.child)
      case p: ResolvedHint         => Some(p.child)
      case p: ReturnAnswer         => Some(p.child)
      case _                       => None
    }
  }

  /** The relations and conditions of a chain of inner joins, and what projections on the way make. */
  final private class ChainParts {
    val relations: mutable.ArrayBuffer[LogicalPlan] = mutable.ArrayBuffer.empty
    val conditions: mutable.ArrayBuffer[Expression] = mutable.ArrayBuffer.empty
    private val aliases = mutable.HashMap.empty[ExprId, Expression]

    def made(id: ExprId): Option[Expression] = aliases.get(id)

    def add(plan: LogicalPlan): Unit = plan match {
      case Stage(inner, _)                               => add(inner)
      case Transparent(child)                            => add(child)
      case Join(left, right, _: InnerLike, condition, _) =>
        add(left)
        add(right)
        conditions ++= condition
      case Filter(condition, child) =>
        add(child)
        conditions += condition
      case Project(list, child) =>
        add(child)
        list.foreach {
          case alias: Alias => aliases.put(alias.exprId, alias.child)
          case _            =>
        }
      case relation => relations += relation
    }
  }

  /** The relations of a chain, by position, that an expression needs. */
  final private class Owners(made: ExprId => Option[Expression], owner: ExprId => Option[Int])
      extends (Expression => Set[Int]) {
    override def apply(e: Expression): Set[Int] = e.references.iterator.flatMap { a =>
      owner(a.exprId).map(Set(_)).orElse(made(a.exprId).map(apply)).getOrElse(Set.empty[Int])
    }.toSet
  }

  private def conjuncts(conditions: Seq[Expression]): Seq[Expression] = conditions.flatMap {
    case And(left, right)                               => conjuncts(Seq(left, right))
    case _: IsNotNull | Literal.TrueLiteral             => Nil
    case _: DynamicPruning                              => Nil
    case c if c.exists(_.prettyName == "might_contain") => Nil
    case c                                              => Seq(c)
  }

  private def bare(e: Expression): Expression = Uncast.all(e) match {
    case alias: Alias => bare(alias.child)
    case other        => other
  }

  private def isTime(t: org.apache.spark.sql.types.DataType) =
    t.typeName == "date" || t.typeName.startsWith("timestamp")

  private def set(texts: Iterable[String]): String =
    texts.toSeq.distinct.sorted.mkString("{", ", ", "}")

  private def hashed(text: String): String = Signature.hex(Signature.hash(text))

  private def nested(p: SubPlan): String = nested(p.text)

  /** Keeps the text of a deep plan short. */
  private def nested(text: String): String =
    if (text.length > MaxNested) hashed(text) else s"<$text>"
}

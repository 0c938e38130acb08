package org.apache.spark.sql.aqepilot.facts

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.Locale

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

/** Names a recurring query: SHA-256 over the analysed plan, with its views expanded and without its
  * literals, names of columns it makes, expression ids, implicit casts and partition paths. It does
  * not depend on the day, the driver, or any policy (they act later), nor, for the same text, on
  * Spark's version as far as the analyser builds the same tree.
  *
  * The fingerprint of a write is that of the query it writes.
  */
object Fingerprint {

  /** 64 hex digits; null if the plan is too deep, or strange, to be read. */
  def of(analysed: LogicalPlan): String =
    FailOpen("fingerprint", null: String)(sha256(text(analysed)))

  /** What is hashed. */
  private[aqepilot] def text(analysed: LogicalPlan): String =
    new PlanText(mutable.HashMap.empty).plan(analysed)

  private[aqepilot] def sha256(text: String): String =
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)).map(b => f"$b%02x").mkString
}

/** Writes a plan as text: children first, so that a column is named where it is made (a source's by
  * the number of the source and its name, any other by a number) before it is used.
  *
  * @param ctes
  *   text hash of each common table expression seen, by its id: a reference stands for the whole
  */
final private class PlanText(ctes: mutable.Map[Long, String]) extends ExpressionText {
  private val names = mutable.HashMap.empty[ExprId, String]
  private var sources = 0
  private var made = 0

  def plan(p: LogicalPlan): String = p match {
    case alias: SubqueryAlias                => plan(alias.child)
    case view: View                          => plan(view.child)
    case result: CommandResult               => plan(result.commandLogicalPlan)
    case command: Command                    => commandText(command)
    case ResolvedHint(child, HintInfo(None)) => plan(child)
    case w: WithCTE                          =>
      w.cteDefs.foreach { d =>
        ctes.put(d.id, Fingerprint.sha256(new PlanText(ctes).plan(d.child)))
      }
      plan(w.plan)
    case ref: CTERelationRef =>
      source(s"with ${ctes.getOrElse(ref.cteId, "itself")}", ref, named = false)
    case leaf if leaf.children.isEmpty =>
      val name = SourceName.of(leaf)
      source(name.getOrElse(leaf.nodeName), leaf, named = name.isDefined)
    case project: Project =>
      val child = plan(project.child)
      val items = project.projectList.map(expr)
      val columns = project.output.map(name)
      if (columns == project.child.output.map(name)) child
      // Spark 3.5 and 4 order the columns that they pass through a window differently.
      else if (items == columns) s"Project(${columns.distinct.sorted.mkString(", ")})\n$child"
      else s"Project(${items.mkString(", ")})\n$child"
    case other =>
      val children = other.children.map(plan).mkString("\n")
      val text = nodeText(other)
      other.output.foreach(name)
      s"$text\n{$children}"
  }

  private def nodeText(p: LogicalPlan): String = p match {
    case join: Join           => s"Join ${join.joinType.sql}(${join.condition.map(expr).mkString})"
    case aggregate: Aggregate =>
      s"Aggregate(${exprs(aggregate.groupingExpressions)})(${exprs(aggregate.aggregateExpressions)})"
    case sort: Sort         => s"Sort ${sort.global}(${exprs(sort.order)})"
    case hint: ResolvedHint => s"Hint ${hint.hints.strategy.map(_.displayName).mkString}"
    case other              => s"${other.nodeName}(${exprs(other.expressions)})"
  }

  private def commandText(command: Command): String = {
    val under = command.children ++ command.innerChildren.collect { case p: LogicalPlan => p }
    val queries = under.filter(_.output.nonEmpty)
    if (queries.isEmpty) command.nodeName else queries.map(plan).mkString("\n")
  }

  private def source(text: String, leaf: LogicalPlan, named: Boolean): String = {
    sources += 1
    leaf.output.zipWithIndex.foreach { case (column, i) =>
      names.put(
        column.exprId,
        s"$sources.${if (named) column.name.toLowerCase(Locale.ROOT) else i}"
      )
    }
    s"[$sources $text${if (named) "" else s" ${leaf.output.size}"}]"
  }

  override protected def name(e: NamedExpression): String =
    names.getOrElseUpdate(e.exprId, { made += 1; s"#$made" })

  override protected def subquery(p: LogicalPlan): String = plan(p)

  override protected def aliased(alias: Alias): String = Uncast.all(alias.child) match {
    case column: Attribute =>
      names.put(alias.exprId, name(column))
      name(column)
    case other =>
      val text = expr(other)
      s"$text as ${name(alias)}"
  }
}

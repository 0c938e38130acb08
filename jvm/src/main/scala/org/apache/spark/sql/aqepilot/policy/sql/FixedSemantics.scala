package org.apache.spark.sql.aqepilot.policy.sql

import java.util.Locale

import org.apache.spark.sql.catalyst.analysis.{
  Analyzer,
  EmptyTableFunctionRegistry,
  FunctionRegistry
}
import org.apache.spark.sql.catalyst.catalog.{InMemoryCatalog, SessionCatalog}
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeReference,
  Expression,
  NamedExpression
}
import org.apache.spark.sql.catalyst.optimizer.Optimizer
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Project, Statistics}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/** Spark's parser, analyser and optimiser, cut off from every session.
  *
  * Whatever a session sets or registers (ANSI mode, time zone, case sensitivity, functions, tables,
  * excluded rules), a policy text means the same.
  */
private[policy] object FixedSemantics {
  private val conf: SQLConf = {
    val pinned = new SQLConf
    pinned.setConfString("spark.sql.ansi.enabled", "true")
    pinned.setConfString("spark.sql.session.timeZone", "UTC")
    pinned.setConfString("spark.sql.caseSensitive", "false")
    pinned
  }

  private val functions = FunctionRegistry.builtin.clone()

  // Groups by Spark's own documentation of its functions.
  private val groups: Map[String, String] = functions
    .listFunction()
    .flatMap(id => functions.lookupFunction(id).map(info => id.funcName -> info.getGroup))
    .toMap

  private val analyzer = new Analyzer(
    new SessionCatalog(new InMemoryCatalog, functions, EmptyTableFunctionRegistry, conf)
  )

  private val optimizer = new Optimizer(analyzer.catalogManager) {}

  def under[T](body: => T): T = SQLConf.withExistingConf(conf)(body)

  def functionNames: Iterable[String] = groups.keys

  /** None when this Spark has no such built-in function. */
  def groupOf(function: String): Option[String] = groups.get(function.toLowerCase(Locale.ROOT))

  def parse(text: String): Expression = {
    SharedExpressions.makeFor(text)
    CatalystSqlParser.parseExpression(text) match {
      case Alias(child, _) => child
      case expression      => expression
    }
  }

  def relation(facts: StructType): FactsRelation =
    FactsRelation(
      facts.fields.toSeq.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)())
    )

  def analyze(expression: Expression, relation: FactsRelation): LogicalPlan = {
    val answer = expression match {
      case named: NamedExpression if !named.resolved => named
      case other                                     => Alias(other, "answer")()
    }
    analyzer.executeAndCheck(Project(Seq(answer), relation), new QueryPlanningTracker)
  }

  def optimize(plan: LogicalPlan): LogicalPlan = optimizer.execute(plan)
}

/** One row of facts. A leaf of our own, which no optimiser rule knows how to fold away. */
final private[policy] case class FactsRelation(output: Seq[Attribute]) extends LeafNode {
  override def computeStats(): Statistics = Statistics(sizeInBytes = 1)
}

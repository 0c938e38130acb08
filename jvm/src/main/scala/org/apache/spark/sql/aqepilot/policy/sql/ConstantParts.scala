package org.apache.spark.sql.aqepilot.policy.sql

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  ConditionalExpression,
  Expression,
  Literal,
  RuntimeReplaceable
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Evaluates the constant parts of a plan's expressions once, under a meter.
  *
  * As Spark's ConstantFolding does, which would do it without: what fails in a branch that may never be taken stays as it
  * is.
  */
private[policy] object ConstantParts {

  def in(plan: LogicalPlan): LogicalPlan =
    plan.transformUp { case node => node.mapExpressions(e => evaluated(evaluable(e))) }

  /** Some functions are short for others, as `ReplaceExpressions` has it. */
  private def evaluable(e: Expression): Expression = e match {
    case r: RuntimeReplaceable => evaluable(r.replacement)
    case other                 => other.mapChildren(evaluable)
  }

  private def evaluated(e: Expression, isInBranch: Boolean = false): Expression = e match {
    case c: ConditionalExpression if !c.foldable => c.mapChildren(evaluated(_, isInBranch = true))
    case l: Literal                              => l
    case c if c.foldable                         =>
      try Literal.create(value(c), c.dataType)
      catch { case NonFatal(e) if isInBranch && TooCostly.in(e).isEmpty => c }
    case other => other.mapChildren(evaluated(_, isInBranch))
  }

  private def value(constant: Expression): Any = {
    val metered = Metered(constant)
    metered.meter.start()
    metered.eval(InternalRow.empty)
  }
}

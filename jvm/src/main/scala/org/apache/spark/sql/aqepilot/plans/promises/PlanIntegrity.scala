package org.apache.spark.sql.aqepilot.plans.promises

import org.apache.spark.sql.aqepilot.plans.joins.JoinChain
import org.apache.spark.sql.catalyst.expressions.{Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}

/** The last look at a logical plan that was rewritten. What it finds is a fault of ours: the plan that came in is
  * kept, and the fault is counted.
  *
  * Spark asks as much of its own rules, in `LogicalPlanIntegrity`, only in tests.
  */
object PlanIntegrity extends PredicateHelper {

  /** What is wrong with a plan that is to stand for a chain; None for nothing. */
  def fault(chain: JoinChain, plan: LogicalPlan): Option[String] = {
    val relations = Seq.newBuilder[LogicalPlan]
    val conditions = Seq.newBuilder[Expression]
    def fault(part: LogicalPlan): Option[String] =
      if (chain.relations.exists(_ eq part)) {
        relations += part
        None
      } else {
        part match {
          case j: Join   => conditions ++= j.condition.toSeq.flatMap(splitConjunctivePredicates)
          case f: Filter => conditions ++= splitConjunctivePredicates(f.condition)
          case _         =>
        }
        ofNode(part).orElse(part.children.flatMap(fault(_)).headOption)
      }
    fault(plan).orElse {
      val (read, held) = (relations.result(), conditions.result())
      if (plan.output != chain.top.output) Some("the output differs")
      else if (
        read.size != chain.relations.size || !chain.relations.forall(r => read.exists(_ eq r))
      )
        Some("the relations differ")
      else if (held.diff(chain.conditions).nonEmpty || chain.conditions.diff(held).nonEmpty)
        Some("the conditions differ")
      else if (!plan.resolved) Some("the plan is not resolved")
      else None
    }
  }

  private def ofNode(node: LogicalPlan): Option[String] = node match {
    case _ if node.missingInput.nonEmpty =>
      Some(s"${node.missingInput.mkString(", ")} is not there")
    case Join(left, right, _: InnerLike, _, _) =>
      val both = left.outputSet.intersect(right.outputSet)
      if (both.isEmpty) None else Some(s"both sides of a join have ${both.mkString(", ")}")
    case _: Filter | _: Project => None
    case other                  => Some(s"a ${other.nodeName} has come in")
  }

  /** Whether two plans are the same, the hints of their joins left out. */
  def differInHintsOnly(before: LogicalPlan, after: LogicalPlan): Boolean =
    (before eq after) || before.children.size == after.children.size && {
      val same = (before, after) match {
        case (one: Join, other: Join) =>
          one.joinType == other.joinType && one.condition == other.condition
        case _ => before.withNewChildren(after.children) == after
      }
      same && before.children.zip(after.children).forall { case (one, other) =>
        differInHintsOnly(one, other)
      }
    }
}

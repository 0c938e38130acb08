package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.aqepilot.policy.Asked
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.Cost

/** The answers on two plans. */
final private case class AskedPlans(current: Asked[Any], candidate: Asked[Any])

/** The two costs of one re-plan.
  *
  * @param plan
  *   the current one
  * @param own
  *   Spark's cost of it
  */
final private class Comparison(val plan: SparkPlan, val own: Cost) {

  /** The re-plan's cost against the current plan's; None = as Spark's own costs are. */
  var order: Option[Int] = None

  val costOfCurrent = new ComparedCost(this, own, isCurrent = true)
}

/** One plan's cost. Only means something beside the other one of its comparison. */
final private class ComparedCost(
    private val of: Comparison,
    private val own: Cost,
    private val isCurrent: Boolean
) extends Cost {

  private def decided(that: ComparedCost): Option[Int] =
    if ((that.of ne of) || that.isCurrent == isCurrent) None
    else of.order.map(o => if (isCurrent) -o else o)

  override def compare(that: Cost): Int = that match {
    case c: ComparedCost => decided(c).getOrElse(own.compare(c.own))
    case _               => own.compare(that)
  }

  override def equals(that: Any): Boolean = that match {
    case c: ComparedCost => decided(c).fold(own == c.own)(_ == 0)
    case _               => own == that
  }

  override def hashCode(): Int = 0

  override def toString: String = own.toString
}

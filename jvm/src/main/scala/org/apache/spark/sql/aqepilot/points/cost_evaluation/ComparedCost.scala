package org.apache.spark.sql.aqepilot.points.cost_evaluation

import org.apache.spark.sql.execution.adaptive.Cost

/** The two costs of one re-plan. */
final private class Comparison(val current: SparkCost) {

  /** The re-plan's cost against the current plan's; None = as Spark's own costs are. */
  var order: Option[Int] = None

  val costOfCurrent = new ComparedCost(this, current.cost, isCurrent = true)
}

/** One plan's cost. Only means something beside the other one of its comparison. */
final private class ComparedCost(
    private val comparison: Comparison,
    private val own: Cost,
    private val isCurrent: Boolean
) extends Cost {

  private def decided(that: ComparedCost): Option[Int] =
    if ((that.comparison ne comparison) || that.isCurrent == isCurrent) None
    else comparison.order.map(o => if (isCurrent) -o else o)

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

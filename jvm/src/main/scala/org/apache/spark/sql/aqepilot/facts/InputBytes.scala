package org.apache.spark.sql.aqepilot.facts

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage => Stage}

/** How large what a sub-plan reads is, as it is stored: a day's partition is smaller than a month's. */
private[aqepilot] object InputBytes {

  private val known = new WeakNodes[LogicalPlan, Option[Long]]

  /** The sum over all leaves; None where the size of one is not known. */
  def of(plan: LogicalPlan): Option[Long] = known(plan)(plan match {
    case Stage(inner, _)               => of(inner)
    case leaf if leaf.children.isEmpty =>
      val size = Estimates.of(leaf).sizeInBytes
      if (size < leaf.conf.defaultSizeInBytes && size.isValidLong) Some(size.toLong) else None
    case other =>
      val parts = other.children.map(of)
      if (parts.forall(_.isDefined)) Some(parts.flatten.sum) else None
  })
}

package org.apache.spark.sql.aqepilot.points.join_reorder

import scala.collection.mutable

import org.apache.spark.sql.aqepilot.plans.promises.PlanIntegrity
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{
  Filter,
  HintInfo,
  Join,
  JoinHint,
  LogicalPlan,
  Project
}
import org.apache.spark.sql.internal.SQLConf

/** Keeps Spark's reordering by cost (`CostBasedJoinReorder`) away from the joins that a policy ordered, by an empty
  * hint, and from the inner joins next to them, too.
  *
  * Those would be a smaller chain now than the one that Spark would have ordered without us, and Spark's search
  * fails the query (`assertion failed` in `JoinReorderDP.search`) where it cannot connect the relations of a chain.
  * That happens on 3.5 where two uses of a relation have the same expression ids: a part of a chain can lack the
  * condition that connects the whole.
  */
object KeepOrder {

  private val keepAway = JoinHint(Some(HintInfo()), None)

  /** The plan with these hints, where the settings have Spark order joins by cost; the one that came in elsewhere. */
  def apply(ordered: LogicalPlan, conf: SQLConf): LogicalPlan =
    if (!conf.cboEnabled || !conf.joinReorderEnabled) ordered
    else {
      val kept = hinted(ordered)
      if (PlanIntegrity.differInHintsOnly(ordered, kept)) kept
      else {
        FailOpen.fault(JoinReorderPoint.name, "keeping the order changed more than hints")
        ordered
      }
    }

  private def hinted(plan: LogicalPlan): LogicalPlan = {
    val region = new Region
    region.read(plan)
    val isOrdered = region.joins.exists(_.getTagValue(ReorderJoins.tag).nonEmpty)
    def kept(part: LogicalPlan): LogicalPlan =
      if (region.ends.exists(_ eq part)) part.mapChildren(hinted)
      else {
        val inner = part.mapChildren(kept)
        part match {
          case before: Join if isOrdered && before.hint == JoinHint.NONE =>
            val join = inner.asInstanceOf[Join].copy(hint = keepAway)
            join.copyTagsFrom(before)
            join
          case _ => inner
        }
      }
    kept(plan)
  }

  /** The inner joins that Spark could take for one chain, and the plans that they join. */
  final private class Region {

    val joins: mutable.ArrayBuffer[Join] = mutable.ArrayBuffer.empty
    val ends: mutable.ArrayBuffer[LogicalPlan] = mutable.ArrayBuffer.empty

    /** Whether no hint of the user's keeps Spark away already. */
    private def isFree(join: Join) =
      join.hint == JoinHint.NONE || join.getTagValue(ReorderJoins.tag).nonEmpty

    def read(plan: LogicalPlan): Unit = plan match {
      case join: Join if join.joinType.isInstanceOf[InnerLike] && isFree(join) =>
        joins += join
        join.children.foreach(read)
      case Filter(_, child)                                               => read(child)
      case Project(list, child) if list.forall(_.isInstanceOf[Attribute]) => read(child)
      case end                                                            => ends += end
    }
  }
}

package org.apache.spark.sql.aqepilot.points.join_reorder

import org.apache.spark.sql.aqepilot.reasons.Reason
import org.apache.spark.sql.catalyst.util.ArrayData

/** Which orders are legal at `join_reorder`. */
object OrderLegality {

  /** Why these are not the positions of n relations, each once; None when they are. */
  def refusal(order: ArrayData, n: Int): Option[(Reason, String)] = {
    val positions = (0 until order.numElements()).map(i =>
      if (order.isNullAt(i)) None else Some(order.getInt(i))
    )
    val twice = positions.groupBy(identity).collectFirst { case (p, ps) if ps.size > 1 => p }
    if (positions.size != n)
      Some((Reason.WrongLength, s"${positions.size} positions for $n relations"))
    else if (positions.exists(_.forall(p => p < 0 || p >= n)))
      Some((Reason.OutOfRange, s"a position that is null or not 0 to ${n - 1}"))
    else twice.flatten.map(p => (Reason.Contradiction, s"position $p is named twice"))
  }

  /** Why Spark would read partitions that it may prune in its own order, if it would. */
  def readsMore(order: ArrayData, pruned: Seq[PrunedRelation]): Option[(Reason, String)] =
    pruned.find(!_.isKept(order.toIntArray().toSeq)).map { of =>
      (
        Reason.ReadsMore,
        s"Spark may prune partitions of relation ${of.position} by a broadcast of ${of.by.toSeq.sorted.mkString(", ")}, " +
          "which another order takes away"
      )
    }
}

package io.aqepilot.decision

/** Which orders are legal at `join_reorder`. */
object OrderLegality {

  /** Why these are not the positions of n relations, each once; None when they are. */
  def refusal(order: Seq[Option[Int]], n: Int): Option[(Reason, String)] = {
    val twice = order.flatten.groupBy(identity).collectFirst { case (p, ps) if ps.size > 1 => p }
    if (order.size != n)
      Some((Reason.WrongLength, s"${order.size} positions for $n relations"))
    else if (order.exists(_.forall(p => p < 0 || p >= n)))
      Some((Reason.OutOfRange, s"a position that is null or not 0 to ${n - 1}"))
    else twice.map(p => (Reason.Contradiction, s"position $p is named twice"))
  }
}

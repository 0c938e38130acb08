package org.apache.spark.sql.aqepilot.points.join_reorder

/** What an answer at `join_reorder` says. */
sealed trait OrderDecision

/** Of one candidate: the lowest joins next. */
final case class Score(value: Double) extends OrderDecision {

  /** Whether it can be compared. */
  def isNumber: Boolean = !value.isNaN && !value.isInfinity
}

/** Of all relations of a chain.
  *
  * @param positions
  *   in Spark's own order, from the first to the last relation to join; None = null, which is not legal
  */
final case class WholeOrder(positions: Seq[Option[Int]]) extends OrderDecision {

  /** The positions of a legal one. */
  lazy val order: Seq[Int] = positions.flatten

  /** Whether it is Spark's own, if it is legal. */
  def isSparks: Boolean = order == order.indices
}

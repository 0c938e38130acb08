package org.apache.spark.sql.aqepilot.spark

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.JoinSelectionHelper
import org.apache.spark.sql.classic.SparkSession

/** The classic session.
  *
  * 4.0 split SparkSession into an interface shared with Spark Connect and `classic.SparkSession`, and lets join
  * keys have types that cannot be hashed (collations).
  */
object Sessions extends JoinSelectionHelper {
  type Classic = SparkSession

  def active: Option[Classic] = SparkSession.getActiveSession

  def activate(session: Classic): Unit = SparkSession.setActiveSession(session)

  /** For a thread of ours: it has the session of the thread that made it, which could not end before it. */
  def forget(): Unit = SparkSession.clearActiveSession()

  def hashable(leftKeys: Seq[Expression], rightKeys: Seq[Expression]): Boolean =
    hashJoinSupported(leftKeys, rightKeys)
}

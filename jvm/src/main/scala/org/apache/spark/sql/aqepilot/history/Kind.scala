package org.apache.spark.sql.aqepilot.history

/** What a signature names. */
object Kind {

  /** The rows of a sub-plan. */
  val Plan = "PLAN"

  /** A shuffle, and the stage that read it. */
  val Shuffle = "SHUFFLE"

  /** A query, by its fingerprint. */
  val Query = "QUERY"

  /** No history of the signature is to be used for a while. */
  private[history] val Held = "HELD"

  private[history] val measured = Seq(Plan, Shuffle, Query)
}

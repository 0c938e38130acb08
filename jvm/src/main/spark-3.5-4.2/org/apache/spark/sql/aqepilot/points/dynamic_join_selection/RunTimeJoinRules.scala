package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.Need

/** Spark's own run-time join rules in 3.5 to 4.2, by name. 4.3 took DynamicJoinSelection apart, and
  * PREFER_SHUFFLE_HASH went.
  */
private[aqepilot] object RunTimeJoinRules {
  val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.DynamicJoinSelection"),
    Need("org.apache.spark.sql.catalyst.plans.logical.PREFER_SHUFFLE_HASH$")
  )
}

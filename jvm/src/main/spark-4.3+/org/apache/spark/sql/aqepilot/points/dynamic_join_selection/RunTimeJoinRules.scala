package org.apache.spark.sql.aqepilot.points.dynamic_join_selection

import org.apache.spark.sql.aqepilot.decision.Need

/** Spark's own run-time join rules from 4.3 on, by name. */
private[aqepilot] object RunTimeJoinRules {
  val needs: Seq[Need] = Seq(
    Need("org.apache.spark.sql.execution.adaptive.DemoteBroadcastHashJoin"),
    Need("org.apache.spark.sql.execution.adaptive.ConvertSortMergeJoinToShuffledHashJoin")
  )
}

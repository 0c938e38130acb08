package org.apache.spark.sql.aqepilot.ui

/** How a query stands. */
private[ui] object QueryState {
  def of(query: KeptQuery): String = query.closed match {
    case Some(c) if c.succeeded            => "succeeded"
    case Some(_)                           => "failed"
    case _ if query.id == KeptQuery.NotRun => "not run"
    case None                              => "running"
  }
}

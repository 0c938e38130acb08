package org.apache.spark.sql.aqepilot

import org.apache.spark.SparkContext

/** What is worked out once for an application; a driver may have one after the other. */
final private[aqepilot] class PerApplication[T](make: SparkContext => T) {

  private val known = Recent.map[String, T](4)

  def of(sc: SparkContext): T = known.computeIfAbsent(sc.applicationId, _ => make(sc))
}

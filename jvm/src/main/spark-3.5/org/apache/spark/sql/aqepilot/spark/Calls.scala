package org.apache.spark.sql.aqepilot.spark

/** The calls on this thread's stack. Spark 3.5 runs on Java 8, too, which writes down the whole stack at once. */
private[aqepilot] object Calls {

  /** Class and method of those calls whose class counts, the latest first. */
  def by(counts: String => Boolean): Seq[(String, String)] =
    Thread.currentThread.getStackTrace.toSeq
      .filter(call => counts(call.getClassName))
      .map(call => call.getClassName -> call.getMethodName)
}

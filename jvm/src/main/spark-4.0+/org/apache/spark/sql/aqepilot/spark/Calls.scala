package org.apache.spark.sql.aqepilot.spark

/** The calls on this thread's stack. */
private[aqepilot] object Calls {

  /** Class and method of those calls whose class counts, the latest first. */
  def by(counts: String => Boolean): Seq[(String, String)] = {
    val calls = Seq.newBuilder[(String, String)]
    StackWalker.getInstance().forEach { call =>
      if (counts(call.getClassName)) calls += call.getClassName -> call.getMethodName
    }
    calls.result()
  }
}

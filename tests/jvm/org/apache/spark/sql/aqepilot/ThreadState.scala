package org.apache.spark.sql.aqepilot

import java.lang.ref.Reference

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.trees.{CurrentOrigin, Origin}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.{SparkContext, TaskContext}
import org.slf4j.MDC

/** What Spark and its libraries keep of a thread, by name. */
object ThreadState {

  /** A place in a text of the user's, as the thread has one while Spark rewrites a plan. */
  val users: Origin = Origin(Some(7), Some(7), sqlText = Some("the user's"))

  private val javas = Seq("java.", "jdk.", "sun.", "com.fasterxml.", "org.apache.logging.")

  /** The distribution that the user wants is kept from hook to hook of one planning. */
  private val ours = "org.apache.spark.sql.aqepilot.plans.promises.RequiredDistribution"

  /** Runs a hook where the thread has a user's place, and tells what is another than before. */
  def changes(hook: => Any): Seq[String] = CurrentOrigin.withOrigin(users) {
    val before = now
    val locals = threadLocals
    try hook
    catch { case _: Throwable => }
    val named = now.collect {
      case (name, value) if before(name) != value =>
        s"$name: ${before(name)} -> $value"
    }
    val others = locals.collect {
      case (local, value) if threadLocals.get(local).forall(_ ne value) =>
        s"thread local $local: $value -> ${threadLocals.get(local)}"
    }
    (named ++ others).toSeq
  }

  private def now: Map[String, Any] = {
    val thread = Thread.currentThread
    Map(
      "origin" -> CurrentOrigin.get,
      "settings" -> new Same(SQLConf.get),
      "active session" -> SparkSession.getActiveSession.map(new Same(_)),
      "default session" -> SparkSession.getDefaultSession.map(new Same(_)),
      "local properties" -> SparkContext.getActive.map(_.getLocalProperties.clone()),
      "task" -> Option(TaskContext.get()).map(new Same(_)),
      "class loader" -> new Same(thread.getContextClassLoader),
      "analysis" -> AnalysisContext.get,
      "interrupt" -> thread.isInterrupted,
      "thread" -> ((thread.getName, thread.getPriority)),
      "log context" -> MDC.getCopyOfContextMap
    )
  }

  private class Same(val value: AnyRef) {
    override def equals(that: Any): Boolean = that match {
      case s: Same => s.value eq value
      case _       => false
    }
    override def hashCode: Int = System.identityHashCode(value)
    override def toString: String = String.valueOf(value)
  }

  /** All thread locals that have a value, but those of Java and of its logging and JSON. */
  private def threadLocals: Map[ThreadLocal[_], AnyRef] =
    Seq("threadLocals", "inheritableThreadLocals").flatMap { name =>
      val map = read(classOf[Thread], name, Thread.currentThread)
      if (map == null) Nil
      else
        read(map.getClass, "table", map).asInstanceOf[Array[AnyRef]].toSeq.filter(_ != null).map {
          e =>
            e.asInstanceOf[Reference[ThreadLocal[_]]].get -> read(e.getClass, "value", e)
        }
    }.filter { case (local, value) =>
      local != null && value != null && !local.getClass.getName.startsWith(ours) &&
      !javas.exists(j =>
        kind(value).getName.startsWith(j) && !local.getClass.getName.startsWith(
          "org.apache.spark"
        )
      )
    }.toMap

  /** Log4j keeps its context as an array; the context itself is compared above. */
  private def kind(value: AnyRef): Class[_] =
    Option(value.getClass.getComponentType).getOrElse(value.getClass)

  private def read(in: Class[_], name: String, value: AnyRef): AnyRef = {
    val field = in.getDeclaredField(name)
    field.setAccessible(true)
    field.get(value)
  }
}

package org.apache.spark.sql.aqepilot.facts

import java.util.concurrent.CopyOnWriteArrayList
import java.util.{Collections, WeakHashMap}

import org.apache.spark.sql.execution.QueryExecution

/** What a rule remembers of each query while it is executed.
  *
  * It is forgotten with the event of the execution's end. Should that be lost, the query is known weakly; but a
  * `WeakHashMap` drops what belonged to a collected query only when it is used again, and a driver may be idle by then.
  *
  * @param make
  *   what is remembered at first
  */
final private[aqepilot] class PerQuery[A <: AnyRef](make: () => A) {

  private val remembered = Collections.synchronizedMap(new WeakHashMap[QueryExecution, A]())
  PerQuery.all.add(this)

  /** A new one at each call outside an execution (`df.rdd`, `explain`). */
  def apply(executionId: Option[Long]): A = QueryFacts
    .execution(executionId)
    .fold(make())(remembered.computeIfAbsent(_, _ => make()))

  private[aqepilot] def isEmpty: Boolean = remembered.isEmpty
}

private[aqepilot] object PerQuery {

  private val all = new CopyOnWriteArrayList[PerQuery[_]]

  /** Forgets what rules remember of a query. */
  def ended(query: QueryExecution): Unit = all.forEach(_.remembered.remove(query))
}

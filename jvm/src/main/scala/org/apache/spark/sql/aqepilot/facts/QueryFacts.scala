package org.apache.spark.sql.aqepilot.facts

import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.spark.Recent
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}

/** The query that a thread plans or runs. */
object QueryFacts {

  /** The SQL execution that this thread works for; None outside one (`df.rdd`, `explain`). */
  def executionId(sc: SparkContext): Option[Long] =
    Option(sc.getLocalProperty(SQLExecution.EXECUTION_ID_KEY)).flatMap(s => Try(s.toLong).toOption)

  /** The query that is executed under an id; None once it has ended, and outside an execution. */
  def execution(executionId: Option[Long]): Option[QueryExecution] =
    executionId.flatMap(id => Option(SQLExecution.getQueryExecution(id)))

  /** The query's fingerprint, computed at the first call for an execution. */
  def fingerprint(executionId: Option[Long]): Option[String] =
    executionId.flatMap(Fingerprints.of)
}

/** Each running query's fingerprint, computed once. */
private object Fingerprints {

  private val known = Recent.map[(String, Long), Option[String]](1000)

  def of(executionId: Long): Option[String] =
    SparkSession.getActiveSession.map(_.sparkContext.applicationId).flatMap { app =>
      val key = (app, executionId)
      val before = known.get(key)
      if (before != null) before
      else {
        val computed = QueryFacts
          .execution(Some(executionId))
          .flatMap(qe => Option(Fingerprint.of(qe.analyzed)))
        known.put(key, computed)
        computed
      }
    }
}

package org.apache.spark.sql.aqepilot.facts

import scala.util.Try

import org.apache.spark.internal.config
import org.apache.spark.scheduler.local.LocalSchedulerBackend
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.aqepilot.spark.{BySettings, Recent, SparkJoinRules}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.execution.{QueryExecution, SQLExecution}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.Utils
import org.apache.spark.{ExecutorAllocationClient, SPARK_VERSION, SparkConf, SparkContext}

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

  def query(sc: SparkContext, executionId: Option[Long]): LazyRow =
    CommonFacts.query.row(Query(sc, SQLConf.get, executionId))

  def cluster(sc: SparkContext): LazyRow = CommonFacts.cluster.row(sc)

  def string(s: String): UTF8String = UTF8String.fromString(s)

  def strings(s: Seq[String]): ArrayData = new GenericArrayData(s.map(string).toArray[Any])
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

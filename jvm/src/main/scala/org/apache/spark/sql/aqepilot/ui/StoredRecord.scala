package org.apache.spark.sql.aqepilot.ui

import scala.reflect.{ClassTag, classTag}

import org.apache.spark.status.KVUtils
import org.apache.spark.util.kvstore.KVStore

import io.aqepilot.log.{AqePilotControl, AqePilotExperiment, AqePilotPolicyLoaded}

/** The record as a [[RecordListener]] has put it into Spark's status store. */
final private[ui] class StoredRecord(store: KVStore) {

  /** Whether there is anything. */
  def nonEmpty: Boolean = Seq(
    classOf[KeptQuery],
    classOf[KeptPolicy],
    classOf[KeptUnit],
    classOf[KeptControl]
  ).exists(store.count(_) > 0)

  def queries: Seq[KeptQuery] = all[KeptQuery]

  def query(id: Long): Option[KeptQuery] = read[KeptQuery](id)

  /** In the order in which they were made. */
  def decisions(query: Long): Seq[KeptDecision] =
    KVUtils
      .viewToSeq(store.view(classOf[KeptDecision]).index("query").first(query).last(query))
      .sortBy(_.id)

  /** A decision's facts as JSON; none where they are not in the log, or made room. */
  def facts(kept: KeptDecision): Option[String] =
    read[KeptFacts](KeptFacts.id(kept.query, kept.decision.factsId)).map(_.json)

  /** The newest first. */
  def policies: Seq[AqePilotPolicyLoaded] = all[KeptPolicy].map(_.loaded).sortBy(-_.time)

  /** The newest first. */
  def units: Seq[AqePilotExperiment] = all[KeptUnit].map(_.state).sortBy(-_.time)

  /** The newest first. */
  def control: Seq[AqePilotControl] = all[KeptControl].sortBy(-_.id).map(_.reading)

  /** Older queries that made room. */
  def queriesLeftOut: Long = all[KeptLosses].map(_.queries).sum

  private def all[T: ClassTag]: Seq[T] =
    KVUtils.viewToSeq(store.view(classTag[T].runtimeClass.asInstanceOf[Class[T]]))

  private def read[T: ClassTag](id: Any): Option[T] =
    try Some(store.read(classTag[T].runtimeClass.asInstanceOf[Class[T]], id))
    catch { case _: NoSuchElementException => None }
}

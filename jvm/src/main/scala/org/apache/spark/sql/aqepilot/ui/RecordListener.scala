package org.apache.spark.sql.aqepilot.ui

import java.util.{Collections, LinkedHashMap}

import org.apache.spark.SparkConf
import org.apache.spark.scheduler.{
  SparkListener,
  SparkListenerEnvironmentUpdate,
  SparkListenerEvent
}
import org.apache.spark.sql.aqepilot.reasons.{Fate, Reason}
import org.apache.spark.sql.aqepilot.record.DecisionRing
import org.apache.spark.sql.aqepilot.settings.AqePilotConf
import org.apache.spark.sql.aqepilot.spark.FailOpen
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.util.kvstore.KVStore

import io.aqepilot.log.{
  AqePilotControl,
  AqePilotDecision,
  AqePilotExperiment,
  AqePilotPolicyLoaded,
  AqePilotQueryClosed
}

/** Puts the record's events into Spark's status store, as they are, for the pages to read: of a driver while it runs, of
  * a log when a history server opens it. A log without them costs it nothing.
  *
  * Kept are no more queries than Spark keeps, and no more bytes than `mostBytes`: the oldest queries go, and are counted.
  *
  * @param mostBytes
  *   an estimate of the heap
  * @param heard
  *   called for each event of ours, before it is kept
  */
final private[ui] class RecordListener(
    store: KVStore,
    mostQueries: Int,
    mostBytes: Long,
    heard: () => Unit
) extends SparkListener {
  import RecordListener._

  private var isOn = true
  // The bytes of each query, the oldest first.
  private val held = new LinkedHashMap[Long, Long]
  private var heldBytes = 0L
  private var losses = 0L
  private var readings = 0L
  private val policies = new Newest(store, classOf[KeptPolicy], MostOthers)
  private val units = new Newest(store, classOf[KeptUnit], MostOthers)
  private val control = new Newest(store, classOf[KeptControl], MostReadings)

  /** Of an application that was submitted without the tab. */
  override def onEnvironmentUpdate(update: SparkListenerEnvironmentUpdate): Unit =
    FailOpen("ui", ()) {
      val settings = update.environmentDetails.getOrElse("Spark Properties", Nil)
      isOn = isOn && !settings.exists { case (key, value) =>
        key == AqePilotConf.Ui.key && value.trim == "false"
      }
    }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case e: AqePilotDecision     => keep(decided(e))
    case e: AqePilotQueryClosed  => keep(closed(e))
    case e: AqePilotPolicyLoaded =>
      keep(policies.add(KeptPolicy(s"${e.sessionId} ${e.policy} ${e.point}", e))(_.id))
    case e: AqePilotExperiment =>
      keep(units.add(KeptUnit(s"${e.experiment} ${e.unit}", e))(_.id))
    case e: AqePilotControl =>
      readings += 1
      keep(control.add(KeptControl(readings, e))(_.id))
    case _ =>
  }

  private def keep(body: => Unit): Unit = if (isOn) FailOpen("ui", ()) {
    heard()
    body
  }

  private def decided(e: AqePilotDecision): Unit = {
    val id = e.executionId.getOrElse(KeptQuery.NotRun)
    val query = known(id).getOrElse(KeptQuery(id, e.time))
    val decision = e.copy(facts = None, commonFacts = None)
    val bytes = DecisionRing.bytesOf(decision) + e.facts.fold(0L)(DecisionRing.bytesOf(_))
    if (hasRoom(id, bytes)) {
      e.facts.foreach(json => store.write(KeptFacts(KeptFacts.id(id, e.factsId), id, json)))
      store.write(KeptDecision(e.decisionId, id, decision, None))
      store.write(counted(query, decision, 1))
    } else store.write(query.copy(leftOut = query.leftOut + 1))
  }

  private def closed(e: AqePilotQueryClosed): Unit = {
    val before = known(e.executionId).getOrElse(KeptQuery(e.executionId, e.time))
    val end = e.copy(fates = Nil, claimed = Nil, subPlans = Nil)
    hasRoom(e.executionId, DecisionRing.bytesOf(end))
    val query = e.claimed.flatMap(decision(_)).filter(_.query != e.executionId)
      .foldLeft(before)(claim)
    val fates = e.fates.flatMap(fate => decision(fate.decisionId).map(_ -> fate))
    fates.foreach { case (kept, fate) => store.write(kept.copy(fate = Some(fate))) }
    store.write(
      query.copy(
        adopted = fates.count(_._2.fate == Fate.Adopted.code),
        closed = Some(end)
      )
    )
  }

  /** A decision that was made before its query ran. */
  private def claim(query: KeptQuery, kept: KeptDecision): KeptQuery = {
    val decision = kept.decision.copy(executionId = Some(query.id))
    val facts = new StoredRecord(store).facts(kept)
    val bytes = DecisionRing.bytesOf(decision) + facts.fold(0L)(DecisionRing.bytesOf(_))
    known(kept.query).foreach(from => store.write(counted(from, kept.decision, -1)))
    if (hasRoom(query.id, bytes)) {
      facts.foreach { json =>
        store.write(KeptFacts(KeptFacts.id(query.id, decision.factsId), query.id, json))
      }
      store.write(KeptDecision(kept.id, query.id, decision, None))
      counted(query, decision, 1)
    } else {
      store.delete(classOf[KeptDecision], kept.id)
      query.copy(leftOut = query.leftOut + 1)
    }
  }

  private def counted(query: KeptQuery, e: AqePilotDecision, by: Int): KeptQuery = {
    def one(isOne: Boolean) = if (isOne) by else 0
    query.copy(
      decisions = query.decisions + by,
      applied = query.applied + one(e.applied),
      refused = query.refused + one(Outcome.isRefused(e)),
      shadow = query.shadow + one(e.reason == Reason.Shadow.code)
    )
  }

  private def known(id: Long): Option[KeptQuery] = new StoredRecord(store).query(id)

  private def decision(id: Long): Option[KeptDecision] =
    try Some(store.read(classOf[KeptDecision], id))
    catch { case _: NoSuchElementException => None }

  /** Makes room for more of a query, by older ones; false where the query alone has no more. */
  private def hasRoom(query: Long, bytes: Long): Boolean = {
    val own = held.getOrDefault(query, 0L)
    val fits = own + bytes <= mostBytes
    held.put(query, own + (if (fits) bytes else 0L))
    if (fits) heldBytes += bytes
    val oldest = held.entrySet.iterator
    while ((heldBytes > mostBytes || held.size > mostQueries) && oldest.hasNext) {
      val entry = oldest.next()
      if (entry.getKey != query) {
        heldBytes -= entry.getValue
        forget(entry.getKey)
        oldest.remove()
      }
    }
    fits
  }

  private def forget(query: Long): Unit = {
    val id = Collections.singleton(java.lang.Long.valueOf(query))
    store.removeAllByIndexValues(classOf[KeptDecision], "query", id)
    store.removeAllByIndexValues(classOf[KeptFacts], "query", id)
    store.delete(classOf[KeptQuery], query)
    losses += 1
    store.write(KeptLosses(0, losses))
  }
}

private[ui] object RecordListener {
  private val MostBytes = 16L * 1024 * 1024
  private val MostOthers = 1000
  private val MostReadings = 100

  def apply(store: KVStore, conf: SparkConf, heard: () => Unit): RecordListener =
    new RecordListener(
      store,
      math.max(1, conf.get(StaticSQLConf.UI_RETAINED_EXECUTIONS)),
      MostBytes,
      heard
    )

  /** Those of a kind, of which the oldest go. */
  final private class Newest[T <: AnyRef](store: KVStore, kind: Class[T], most: Int) {
    private val ids = new LinkedHashMap[Any, Unit]

    def add(kept: T)(id: T => Any): Unit = {
      ids.remove(id(kept))
      ids.put(id(kept), ())
      store.write(kept)
      if (ids.size > most) {
        val oldest = ids.keySet.iterator
        store.delete(kind, oldest.next())
        oldest.remove()
      }
    }
  }
}

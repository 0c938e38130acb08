package org.apache.spark.sql.aqepilot.record

import java.util.{ArrayDeque, HashMap}

import io.aqepilot.log.{AqePilotDecision, AqePilotFate}

/** The newest decisions, for the live view, bounded in bytes: the oldest go first. A facts row that
  * several decisions share is kept once and is there again in each of them when they are read.
  */
final class DecisionRing(maxBytes: Long) {
  import DecisionRing._

  final private class Entry(var decision: AqePilotDecision) {
    var fate: Option[AqePilotFate] = None
  }
  final private class Facts(val json: String) {
    var uses = 0
  }

  private val entries = new ArrayDeque[Entry]
  private val byId = new HashMap[Long, Entry]
  private val facts = new HashMap[String, Facts]
  private var held = 0L

  /** Returns how many older decisions had to go (this one, too, if it alone is too large). */
  def add(decision: AqePilotDecision): Int = synchronized {
    for (json <- decision.facts if !facts.containsKey(decision.factsId)) {
      facts.put(decision.factsId, new Facts(json))
      held += bytesOf(json)
    }
    Option(facts.get(decision.factsId)).foreach(_.uses += 1)
    val entry = new Entry(decision.copy(facts = None))
    entries.addLast(entry)
    byId.put(decision.decisionId, entry)
    held += bytesOf(entry.decision)
    evict()
  }

  def hasFacts(factsId: String): Boolean = synchronized(facts.containsKey(factsId))

  def settle(fates: Seq[AqePilotFate]): Int = synchronized {
    for (fate <- fates; entry <- Option(byId.get(fate.decisionId)) if entry.fate.isEmpty) {
      entry.fate = Some(fate)
      held += bytesOf(fate)
    }
    evict()
  }

  /** Decisions that were made before their query ran are its own from now on. */
  def claim(ids: Seq[Long], executionId: Long, fingerprint: Option[String]): Unit = synchronized {
    for (id <- ids; entry <- Option(byId.get(id))) {
      held -= bytesOf(entry.decision)
      entry.decision =
        entry.decision.copy(executionId = Some(executionId), fingerprint = fingerprint)
      held += bytesOf(entry.decision)
    }
  }

  /** Oldest first; null fate: not known yet, or not applied. */
  def decisions: Seq[(AqePilotDecision, Option[AqePilotFate])] = synchronized {
    val all = Vector.newBuilder[(AqePilotDecision, Option[AqePilotFate])]
    entries.forEach { e =>
      val json = Option(facts.get(e.decision.factsId)).map(_.json)
      all += ((e.decision.copy(facts = json), e.fate))
    }
    all.result()
  }

  def bytes: Long = synchronized(held)

  private def evict(): Int = {
    var evicted = 0
    while (held > maxBytes && !entries.isEmpty) {
      val oldest = entries.removeFirst()
      byId.remove(oldest.decision.decisionId)
      held -= bytesOf(oldest.decision) + oldest.fate.map(bytesOf).getOrElse(0L)
      for (shared <- Option(facts.get(oldest.decision.factsId))) {
        shared.uses -= 1
        if (shared.uses <= 0) {
          facts.remove(oldest.decision.factsId)
          held -= bytesOf(shared.json)
        }
      }
      evicted += 1
    }
    evicted
  }
}

object DecisionRing {

  /** An estimate of the heap that a case class of strings and numbers takes. */
  private[aqepilot] def bytesOf(record: Product): Long = 64L + record.productIterator.map {
    case text: String       => bytesOf(text)
    case Some(text: String) => 16 + bytesOf(text)
    case _                  => 24L
  }.sum

  private[aqepilot] def bytesOf(text: String): Long = 56L + text.length
}

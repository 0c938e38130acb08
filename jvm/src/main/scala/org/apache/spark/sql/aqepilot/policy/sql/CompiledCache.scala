package org.apache.spark.sql.aqepilot.policy.sql

import java.util.LinkedHashMap
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap}

import scala.annotation.tailrec

import org.apache.spark.sql.aqepilot.policy.{PolicyError, SqlPolicy}
import org.apache.spark.sql.types.{DataType, StructType}

/** The texts that were compiled or refused last; the least recently used one leaves first.
  *
  * @param maxTextBytes upper bound of the texts' UTF-16 bytes, all together
  */
final private[policy] class CompiledCache(maxEntries: Int, maxTextBytes: Long) {
  import CompiledCache._

  private val entries = new LinkedHashMap[Key, Outcome](16, 0.75f, true)
  private var textBytes = 0L

  /** The texts that are being compiled; None where the compiling thread was ended. */
  private val begun = new ConcurrentHashMap[Key, CompletableFuture[Option[Outcome]]]

  /** The outcome of a text, which is compiled if nobody has done so.
    *
    * Compiles outside the lock, and no text twice: a second caller waits for the first one's outcome. If the first one
    * was ended, the second one compiles. An outcome that is passing is not kept.
    */
  @tailrec
  def getOrElseUpdate(key: Key)(compile: => Outcome): Outcome = {
    val known = synchronized(entries.get(key))
    val own = new CompletableFuture[Option[Outcome]]
    val others = if (known == null) begun.putIfAbsent(key, own) else null
    if (known != null) known
    else if (others == null) made(key, own, compile)
    else
      others.get() match {
        case Some(made) => made
        case None       => getOrElseUpdate(key)(compile)
      }
  }

  private def made(
      key: Key,
      compiling: CompletableFuture[Option[Outcome]],
      compile: => Outcome
  ): Outcome = {
    var outcome = Option.empty[Outcome]
    try {
      // Another thread may have made it since it was looked up.
      outcome = Some(synchronized(Option(entries.get(key))).getOrElse(compile))
      keep(key, outcome.get)
      outcome.get
    } finally {
      begun.remove(key)
      compiling.complete(outcome)
    }
  }

  private def keep(key: Key, made: Outcome): Unit = synchronized {
    if (!made.swap.exists(_.isPassing) && entries.put(key, made) == null) {
      textBytes += key.bytes
      evict()
    }
  }

  def size: Int = synchronized(entries.size)

  def bytes: Long = synchronized(textBytes)

  private def evict(): Unit = {
    val oldest = entries.entrySet.iterator
    while (entries.size > maxEntries || textBytes > maxTextBytes) {
      textBytes -= oldest.next().getKey.bytes
      oldest.remove()
    }
  }
}

private[policy] object CompiledCache {
  type Outcome = Either[PolicyError, SqlPolicy]

  final case class Key(text: String, facts: StructType, answers: Seq[DataType]) {
    def bytes: Long = 2L * text.length
  }
}

package io.aqepilot.policy

import java.util.LinkedHashMap

import org.apache.spark.sql.types.{DataType, StructType}

/** What was compiled or refused last, least recently used first out.
  *
  * @param maxTextBytes upper bound of the texts' UTF-16 bytes, all together
  */
final private[policy] class CompiledCache(maxEntries: Int, maxTextBytes: Long) {
  import CompiledCache._

  private val entries = new LinkedHashMap[Key, Outcome](16, 0.75f, true)
  private var textBytes = 0L

  /** Compiles outside the lock: two threads may do the same work once, and share the first's. What was not tried is not
    * kept.
    */
  def getOrElseUpdate(key: Key)(compile: => Outcome): Outcome = {
    val known = synchronized(entries.get(key))
    if (known != null) known
    else {
      val made = compile
      synchronized {
        val first = entries.get(key)
        if (first != null) first
        else if (made.swap.exists(_.isPassing)) made
        else {
          entries.put(key, made)
          textBytes += key.bytes
          evict()
          made
        }
      }
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
